// SPDX-License-Identifier: Apache-2.0
// A HealthMonitor driven as the agent drives it, until its results show what a test waits for.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "userspace/monitor/health_monitor.h"

namespace unpin::testkit {

class Watcher {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(30);

  explicit Watcher(std::vector<HealthTarget> targets) {
    auto monitor = HealthMonitor::Create([this](const ProbeResult& r) { results_.push_back(r); });
    EXPECT_TRUE(monitor.ok()) << monitor.status();
    monitor_ = *std::move(monitor);
    monitor_->SetTargets(std::move(targets));
  }

  HealthMonitor& monitor() { return *monitor_; }
  const std::vector<ProbeResult>& results() const { return results_; }

  // False if it has not come true within kPatience.
  bool RunUntil(const std::function<bool()>& is_over) {
    const TimePoint limit = Now() + kPatience;
    while (!is_over()) {
      const TimePoint now = Now();
      if (now > limit) return false;
      Wait(std::min(monitor_->NextDue(), limit) - now);
      EXPECT_TRUE(monitor_->OnReadable(Now()).ok());
      monitor_->Tick(Now());
    }
    return true;
  }

  // The next `count` results from now on.
  std::vector<ProbeResult> Next(size_t count) {
    const size_t before = results_.size();
    EXPECT_TRUE(RunUntil([&] { return results_.size() >= before + count; })) << "no result";
    return {results_.begin() + static_cast<long>(before), results_.end()};
  }

  ProbeResult NextOne() {
    const std::vector<ProbeResult> results = Next(1);
    return results.empty() ? ProbeResult{} : results[0];
  }

 private:
  void Wait(Duration left) {
    pollfd watched = {.fd = monitor_->fd(), .events = POLLIN, .revents = 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    ::poll(&watched, 1, static_cast<int>(std::clamp<long>(ms, 0, 1000)));
  }

  std::unique_ptr<HealthMonitor> monitor_;
  std::vector<ProbeResult> results_;
};

inline HealthTarget TargetAt(uint16_t port, HealthSettings::Kind kind) {
  HealthTarget target;
  target.backend = 7;
  target.endpoint = {.address = {.bits = 0x7f000001}, .port = port};
  target.settings.kind = kind;
  target.settings.interval = std::chrono::milliseconds(20);
  target.settings.timeout = std::chrono::seconds(5);
  return target;
}

}  // namespace unpin::testkit
