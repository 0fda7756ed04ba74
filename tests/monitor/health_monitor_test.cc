// SPDX-License-Identifier: Apache-2.0
// Probing itself: when, how often, and what a TCP connect tells.
#include "userspace/monitor/health_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/monitor/listener.h"
#include "tests/monitor/watcher.h"
#include "userspace/policy/health_state.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testkit::Listener;
using testkit::TargetAt;
using testkit::Watcher;
using enum HealthSettings::Kind;

TEST(TcpProbe, FindsAListenerUp) {
  Listener listener;
  Watcher watcher({TargetAt(listener.port(), kTcp)});
  const ProbeResult result = watcher.NextOne();
  EXPECT_EQ(result.backend, 7u);
  EXPECT_EQ(result.found, Health::kUp) << result.detail;
}

TEST(TcpProbe, FindsAClosedPortRefusingBeyondDoubt) {
  Listener listener;
  listener.Close();
  Watcher watcher({TargetAt(listener.port(), kTcp)});
  const ProbeResult result = watcher.NextOne();
  EXPECT_EQ(result.found, Health::kRefusing);
  EXPECT_TRUE(result.decisive);
  EXPECT_THAT(result.detail, HasSubstr("refused"));
}

TEST(TcpProbe, FindsAHostThatDoesNotAnswerSilentAfterTheTimeout) {
  Listener listener(0);
  listener.GoSilent();
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings.timeout = milliseconds(60);
  Watcher watcher({target});
  const TimePoint begun = Now();
  const ProbeResult result = watcher.NextOne();
  EXPECT_GE(Now() - begun, milliseconds(60));
  EXPECT_EQ(result.found, Health::kSilent);
  EXPECT_FALSE(result.decisive);
  EXPECT_EQ(result.detail, "no connection within 60ms");
}

// An agent that has run out of descriptors must not take its backends for dead.
TEST(TcpProbe, SaysNothingWhenItCouldNotBeMade) {
  Listener listener;
  Watcher watcher({TargetAt(listener.port(), kTcp)});
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const TimePoint start = Now();
  ASSERT_TRUE(watcher.monitor().OnReadable(start).ok());  // takes the targets
  for (int i = 0; i < 10; ++i) watcher.monitor().Tick(start + milliseconds(100) * i);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_THAT(watcher.results(), testing::IsEmpty());
}

// In virtual time: a silent host makes no events.
Duration TimeUntilLost(const HealthTarget& target, Duration already_probed_for) {
  HealthState state;
  Duration lost{};
  TimePoint now = Now();
  const TimePoint start = now;
  auto monitor = HealthMonitor::Create([&](const ProbeResult& result) {
    if (state.OnProbe(result, 2, target.settings.fall)) lost = now - start;
  });
  EXPECT_TRUE(monitor.ok());
  (*monitor)->SetTargets({target});
  EXPECT_TRUE((*monitor)->OnReadable(now).ok());
  now += already_probed_for;
  while (state.health() == Health::kUp && now - start < seconds(60)) {
    (*monitor)->Tick(now);
    now += milliseconds(1);
  }
  return lost - already_probed_for;
}

// S5b: at worst the host is lost just after it was probed; one interval later, at most 10 % late, the first of `fall` failures
// begins.
TEST(HealthMonitor, ALostHostIsKnownSoonAfterTheFirstFailure) {
  Listener listener(0);
  listener.GoSilent();
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings.interval = milliseconds(500);
  target.settings.timeout = milliseconds(250);
  target.settings.fall = 2;
  const Duration after_first_begins = TimeUntilLost(target, Duration::zero());
  EXPECT_GE(after_first_begins, milliseconds(500));
  EXPECT_LE(milliseconds(550) + after_first_begins, milliseconds(1100));
}

TEST(HealthMonitor, ATimeoutAsLongAsTheIntervalDelaysNothing) {
  Listener listener(0);
  listener.GoSilent();
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings.interval = milliseconds(500);
  target.settings.timeout = milliseconds(500);
  target.settings.fall = 2;
  EXPECT_LE(TimeUntilLost(target, Duration::zero()), milliseconds(1010));
}

TEST(HealthMonitor, ProbesAtItsPaceAndNotInStep) {
  Listener listener(4096);
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings.interval = milliseconds(500);
  std::vector<HealthTarget> targets;
  for (BackendId id = 1; id <= 20; ++id) {
    target.backend = id;
    targets.push_back(target);
  }
  std::map<BackendId, int> probes;
  auto monitor = HealthMonitor::Create([&](const ProbeResult& r) { ++probes[r.backend]; });
  ASSERT_TRUE(monitor.ok());
  (*monitor)->SetTargets(targets);
  TimePoint now = Now();
  std::set<Duration> starts_of_last;
  for (int ms = 0; ms <= 5000; ++ms, now += milliseconds(1)) {
    ASSERT_TRUE((*monitor)->OnReadable(now).ok());  // on loopback connections stand at once
    (*monitor)->Tick(now);
    if (ms > 4000) starts_of_last.insert((*monitor)->NextDue() - now);
  }
  for (const auto& [id, count] : probes) {
    EXPECT_GE(count, 9) << id;   // 5000 / 550
    EXPECT_LE(count, 12) << id;  // 5000 / 450, and the first
  }
  EXPECT_EQ(probes.size(), 20u);
  EXPECT_GT(starts_of_last.size(), 10u) << "all in step";
}

TEST(HealthMonitor, ProbeNowDoesNotWaitForTheInterval) {
  Listener listener;
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings.interval = std::chrono::hours(1);
  Watcher watcher({target});
  ASSERT_EQ(watcher.NextOne().found, Health::kUp);
  listener.Close();
  watcher.monitor().ProbeNow(7);
  EXPECT_EQ(watcher.NextOne().found, Health::kRefusing);
}

// The suspicion may be younger than the probe that is under way.
TEST(HealthMonitor, ProbeNowDuringAProbeIsOneMoreProbe) {
  Listener listener(0);
  listener.GoSilent();
  HealthTarget target = TargetAt(listener.port(), kTcp);
  target.settings = {.kind = kTcp,
                     .interval = std::chrono::hours(1),
                     .timeout = milliseconds(500),
                     .rise = 1,
                     .fall = 1,
                     .path = {},
                     .service = {}};
  Watcher watcher({target});
  watcher.RunUntil([&, turns = 0]() mutable { return ++turns > 1; });  // begins
  ASSERT_THAT(watcher.results(), testing::IsEmpty());
  watcher.monitor().ProbeNow(7);
  EXPECT_EQ(watcher.Next(2).size(), 2u);
}

TEST(HealthMonitor, ForgetsTargetsThatAreGone) {
  Listener listener, other;
  HealthTarget first = TargetAt(listener.port(), kTcp);
  Watcher watcher({first});
  watcher.NextOne();
  HealthTarget second = TargetAt(other.port(), kTcp);
  second.backend = 8;
  watcher.monitor().SetTargets({second});
  watcher.NextOne();  // may still be of the first
  for (const ProbeResult& result : watcher.Next(5)) EXPECT_EQ(result.backend, 8u);
}

TEST(HealthMonitor, WithoutTargetsNothingIsDue) {
  Watcher watcher({});
  ASSERT_TRUE(watcher.monitor().OnReadable(Now()).ok());
  EXPECT_EQ(watcher.monitor().NextDue(), TimePoint::max());
}

}  // namespace
}  // namespace unpin
