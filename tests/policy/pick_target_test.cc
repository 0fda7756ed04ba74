// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/pick_target.h"

#include "gtest/gtest.h"

namespace unpin {
namespace {

TargetCandidate Serving(BackendId id, uint32_t weight, uint64_t connections,
                        uint64_t open_streams = 0) {
  return {.id = id,
          .weight = weight,
          .serving = true,
          .connections = connections,
          .open_streams = open_streams};
}

TEST(PickTarget, TakesTheBackendWithTheFewestConnections) {
  const TargetCandidate all[] = {Serving(1, 100, 9), Serving(2, 100, 4), Serving(3, 100, 3),
                                 Serving(4, 100, 5)};
  EXPECT_EQ(PickTarget(all, 1), 3u);
}

TEST(PickTarget, NeverTakesTheBackendTheConnectionIsOn) {
  const TargetCandidate all[] = {Serving(1, 100, 0), Serving(2, 100, 50)};
  EXPECT_EQ(PickTarget(all, 1), 2u);
  const TargetCandidate alone[] = {Serving(1, 100, 0)};
  EXPECT_EQ(PickTarget(alone, 1), std::nullopt);
}

TEST(PickTarget, TakesOnlyServingBackendsThatHaveAWeight) {
  TargetCandidate draining = Serving(2, 100, 0);
  draining.serving = false;
  const TargetCandidate all[] = {Serving(1, 100, 5), draining, Serving(3, 0, 0), Serving(4, 1, 90)};
  EXPECT_EQ(PickTarget(all, 1), 4u);
  EXPECT_EQ(PickTarget(std::span(all).first(3), 1), std::nullopt);
}

TEST(PickTarget, CountsConnectionsAgainstTheWeight) {
  // 20 of 400 is emptier than 10 of 100.
  const TargetCandidate all[] = {Serving(1, 100, 30), Serving(2, 100, 10), Serving(3, 400, 20)};
  EXPECT_EQ(PickTarget(all, 1), 3u);
}

TEST(PickTarget, OpenStreamsBreakATie) {
  const TargetCandidate all[] = {Serving(1, 100, 5), Serving(2, 100, 3, 40), Serving(3, 100, 3, 2)};
  EXPECT_EQ(PickTarget(all, 1), 3u);
}

}  // namespace
}  // namespace unpin
