// SPDX-License-Identifier: Apache-2.0
#include "userspace/rebalance/mover.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rebalance/fake_splicer.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

struct MoverTest : testing::Test {
  absl::StatusOr<MoveId> Start() {
    return mover.Start({.connection = key, .service = 2, .from = 3, .to = 5}, now);
  }

  ConnectionKey key{.client = {{0x0a000002}, 40000}, .vip = {{0x0a090001}, 50051}};
  FakeSplicer splicer;
  MoveSettings settings{.min_age = milliseconds(700)};
  Mover mover{splicer, settings, 1};
  TimePoint now{seconds(1000)};
};

TEST_F(MoverTest, AnIdleConnectionsGoawayIsOnTheWireWhenStartReturns) {
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(splicer.calls, ElementsAre("pin 10.0.0.2 service 2 to 5", "arm 10.0.0.2:40000",
                                         "goaway 10.0.0.2:40000"));
  EXPECT_EQ(splicer.min_age, milliseconds(700));
  EXPECT_EQ(mover.goaways_sent(), 1u);
}

TEST_F(MoverTest, AFailedPinLeavesTheConnectionAlone) {
  splicer.pin = absl::ResourceExhaustedError("pin table is full");
  const auto id = Start();
  ASSERT_TRUE(id.ok());
  EXPECT_THAT(splicer.calls, ElementsAre("pin 10.0.0.2 service 2 to 5"));
  EXPECT_EQ(mover.book().Find(*id)->state, MoveState::kRefused);
}

TEST_F(MoverTest, ARefusedConnectionsPinIsGone) {
  splicer.armed = Splicer::Armed{.refusal = Refusal::kTls};
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(splicer.pins.empty());
  EXPECT_EQ(mover.TakeChanged().back().state, MoveState::kRefused);
}

TEST_F(MoverTest, FailedEmissionsAreCountedAndTriedAgain) {
  splicer.emit = absl::UnavailableError("no buffer space");
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(mover.goaways_failed(), 1u);
  splicer.emit = absl::OkStatus();
  now += milliseconds(20);
  mover.OnDue(now);
  EXPECT_EQ(mover.goaways_sent(), 1u);
}

TEST_F(MoverTest, AnAdoptedConnectionIsSentItsGoaway) {
  mover.Adopt(key, 2, 3, now);
  EXPECT_THAT(splicer.calls, ElementsAre("goaway 10.0.0.2:40000"));
}

TEST_F(MoverTest, NewSettingsHoldForTheNextMove) {
  mover.SetSettings({.min_age = seconds(9)});
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(splicer.min_age, seconds(9));
}

}  // namespace
}  // namespace unpin
