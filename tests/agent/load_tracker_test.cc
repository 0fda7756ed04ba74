// SPDX-License-Identifier: Apache-2.0
// Rates from counters, on numbers small enough to do by hand.
#include "userspace/agent/load_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace unpin {
namespace {

using std::chrono::milliseconds;
using Connections = std::vector<Connection>;

constexpr TimePoint kStart(std::chrono::seconds(1000));
constexpr BackendId kBackend = 7;

Connection Seen(uint16_t port, uint64_t begun, uint64_t ended, TimePoint created = kStart) {
  Connection connection;
  connection.key = {.client = {{0x0a000002}, port}, .vip = {{0x0a090001}, 80}};
  connection.backend = kBackend;
  connection.created = created;
  connection.streams_begun = begun;
  connection.streams_ended = ended;
  return connection;
}

double RateOf(const LoadTracker& tracker, const Connection& connection) {
  return tracker.RatesOf(connection).requests_per_second;
}

TEST(LoadTracker, FirstSightIsTheMeanSoFar) {
  LoadTracker tracker;
  const Connection connection = Seen(1, 50, 50);
  tracker.Update(Connections{connection}, kStart + milliseconds(500));
  EXPECT_NEAR(RateOf(tracker, connection), 100, 1e-9);
}

TEST(LoadTracker, YoungConnectionsArePlainMeansWhateverTheSteps) {
  LoadTracker tracker;
  uint64_t streams = 0;
  for (int i = 1; i <= 10; ++i) {
    streams += i % 2 ? 20 : 0;
    tracker.Update(Connections{Seen(1, streams, 0)}, kStart + milliseconds(100) * i);
  }
  EXPECT_NEAR(RateOf(tracker, Seen(1, 0, 0)), 100, 1e-6) << "100 requests in one second";
}

TEST(LoadTracker, AReusedPortIsAnotherConnection) {
  LoadTracker tracker;
  tracker.Update(Connections{Seen(1, 1000, 1000)}, kStart + milliseconds(1000));
  tracker.Update(Connections{Seen(1, 10, 10, kStart + milliseconds(1000))},
                 kStart + milliseconds(1100));
  EXPECT_NEAR(RateOf(tracker, Seen(1, 0, 0)), 100, 1e-6);
}

TEST(LoadTracker, TheSuccessorBeginsWithTheLoadOfTheOld) {
  LoadTracker tracker;
  const Connection old = Seen(1, 200, 200);
  tracker.Update(Connections{old}, kStart + milliseconds(2000));
  const TimePoint moved = kStart + milliseconds(2010);
  const Connection next = Seen(2, 0, 0, moved);
  tracker.Succeed(old.key, next.key, moved);
  tracker.Update(Connections{old, next}, kStart + milliseconds(2020));
  EXPECT_NEAR(RateOf(tracker, next), 100, 1) << "not the nothing of its first milliseconds";
  EXPECT_EQ(RateOf(tracker, old), 0);
}

// The scan may see the new connection before the move has ended.
TEST(LoadTracker, TheSuccessorMayHaveBeenSeenAlready) {
  LoadTracker tracker;
  const Connection old = Seen(1, 200, 200);
  const Connection next = Seen(2, 0, 0, kStart + milliseconds(1990));
  tracker.Update(Connections{old, next}, kStart + milliseconds(2000));
  ASSERT_EQ(RateOf(tracker, next), 0);
  tracker.Succeed(old.key, next.key, kStart + milliseconds(2010));
  tracker.Update(Connections{old, next}, kStart + milliseconds(2020));
  EXPECT_NEAR(RateOf(tracker, next), 100, 2);
}

TEST(LoadTracker, WhatALongStreamLeavesOnTheOldOneShows) {
  LoadTracker tracker;
  Connection old = Seen(1, 200, 199);
  tracker.Update(Connections{old}, kStart + milliseconds(2000));
  tracker.Succeed(old.key, Seen(2, 0, 0).key, kStart + milliseconds(2000));
  old.bytes_to_client = 1000;
  tracker.Update(Connections{old}, kStart + milliseconds(3000));
  EXPECT_NEAR(tracker.RatesOf(old).bytes_per_second, 1000, 1e-6);
}

TEST(LoadTracker, LatencyIsOpenStreamsByCompletions) {  // Little's law
  LoadTracker tracker;
  uint64_t ended = 0;
  for (int i = 1; i <= 40; ++i) {
    ended += 10;  // 100 a second, 5 open at any time
    tracker.Update(Connections{Seen(1, ended + 5, ended)}, kStart + milliseconds(100) * i);
  }
  EXPECT_NEAR(tracker.LoadOf(kBackend).latency_seconds(), 0.05, 0.001);
}

TEST(LoadTracker, AnIdleBackendKeepsItsLatencyUntilItIsForgotten) {
  LoadTracker tracker;
  for (int i = 1; i <= 40; ++i) {
    const uint64_t ended = 10u * static_cast<uint64_t>(i);
    tracker.Update(Connections{Seen(1, ended + 5, ended)}, kStart + milliseconds(100) * i);
  }
  const double before = tracker.LoadOf(kBackend).latency_seconds();
  EXPECT_GT(before, 0);
  for (int i = 41; i <= 80; ++i) tracker.Update(Connections{}, kStart + milliseconds(100) * i);
  EXPECT_EQ(tracker.LoadOf(kBackend).latency_seconds(), before);
  tracker.Forget(kBackend);
  tracker.Update(Connections{}, kStart + milliseconds(9000));
  EXPECT_EQ(tracker.LoadOf(kBackend).latency_seconds(), 0);
}

}  // namespace
}  // namespace unpin
