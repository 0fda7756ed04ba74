// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/drain_pace.h"

#include "gtest/gtest.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;

TEST(MovesDue, SpreadsTheMovesOverTheWindow) {
  for (const size_t connections : {1u, 7u, 50u, 1000u, 12345u}) {
    size_t waiting = connections;
    size_t largest = 0;
    for (auto at = milliseconds(0); at < milliseconds(1000); at += milliseconds(10)) {
      const size_t due = MovesDue(waiting, milliseconds(1000) - at, milliseconds(10));
      ASSERT_LE(due, waiting);
      largest = std::max(largest, due);
      waiting -= due;
    }
    EXPECT_EQ(waiting, 0u) << connections << " connections";
    EXPECT_LE(largest, connections / 100 + 2)
        << connections << " connections";  // an even hundredth
  }
}

TEST(MovesDue, StartsAtOnceHoweverLongTheWindow) {
  EXPECT_EQ(MovesDue(3, std::chrono::hours(1), milliseconds(10)), 1u);
}

TEST(MovesDue, MovesAllThatIsLeftWhenTheWindowHasEnded) {
  EXPECT_EQ(MovesDue(500, milliseconds(0), milliseconds(10)), 500u);
  EXPECT_EQ(MovesDue(500, milliseconds(-70), milliseconds(10)), 500u);
}

TEST(MovesDue, NothingWaitingNothingDue) {
  EXPECT_EQ(MovesDue(0, milliseconds(0), milliseconds(10)), 0u);
}

}  // namespace
}  // namespace unpin
