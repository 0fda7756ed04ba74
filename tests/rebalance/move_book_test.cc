// SPDX-License-Identifier: Apache-2.0
#include "userspace/rebalance/move_book.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rebalance/move_book_fixture.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = MoveAction::Kind;
using Type = FlowEvent::Type;

struct MoveBookTest : MoveBookFixture {};

// ---- before the commit ----

TEST_F(MoveBookTest, ThePinStandsBeforeTheConnectionIsArmed) {
  const MoveId id = Start();
  MoveOutput output = book.Take();
  ASSERT_EQ(output.actions.size(), 1u);
  EXPECT_EQ(output.actions[0].kind, Kind::kAddPin);
  EXPECT_EQ(output.actions[0].to, kTo);
  EXPECT_EQ(output.actions[0].service, kService);
  EXPECT_EQ(output.actions[0].pin_expires, kStart + seconds(40));
  book.OnPinned(id, absl::OkStatus(), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kArm));
}

TEST_F(MoveBookTest, WithoutItsPinAConnectionIsNotArmed) {
  const MoveId id = Start();
  Actions();
  book.OnPinned(id, absl::ResourceExhaustedError("pin: the client's 16 slots are taken"), now);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_EQ(State(id), MoveState::kRefused);
  EXPECT_EQ(Detail(id), "pin: the client's 16 slots are taken");
}

TEST_F(MoveBookTest, ADrainGoesOnWhenTheClientHasNoRoomForAPin) {
  MoveBook::Order order = OrderFor(40000);
  order.reason = MoveReason::kDrain;
  const MoveId id = book.Start(order, now).value();
  Actions();
  book.OnPinned(id, absl::ResourceExhaustedError("pin: the client's 16 slots are taken"), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kArm));
  book.OnArmed(id, Splicer::Armed{.committed = true}, now);
  Tell(Type::kAcknowledged);
  After(seconds(40));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "pin: the client's 16 slots are taken");
}

TEST_F(MoveBookTest, AnIdleConnectionsGoawayGoesOutAtOnce) {
  const MoveId id = StartAndPin();
  Actions();
  book.OnArmed(id, Splicer::Armed{.committed = true}, now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  EXPECT_EQ(State(id), MoveState::kSent);
  EXPECT_EQ(book.Find(id)->sent, now);
}

TEST_F(MoveBookTest, ABusyConnectionsGoawayGoesOutWhenItHasCommitted) {
  const MoveId id = StartAndArm();
  Actions();
  EXPECT_EQ(State(id), MoveState::kPlanned);
  now += milliseconds(3);
  Tell(Type::kCommitted);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  EXPECT_EQ(State(id), MoveState::kSent);
  EXPECT_EQ(book.Find(id)->sent, kStart + milliseconds(3));
}

TEST_F(MoveBookTest, ACommitToldTwiceIsOneGoaway) {
  StartAndCommit();
  Actions();
  Tell(Type::kCommitted);
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookTest, APacketMayBeCutOnlyAfterTheTrimDelay) {
  StartAndArm();
  Actions();
  After(milliseconds(19));
  EXPECT_THAT(Actions(), IsEmpty());
  After(milliseconds(1));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kArmWithTrim));
}

TEST_F(MoveBookTest, TrimmingIsAskedForOnce) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  Actions();
  book.OnArmed(id, Splicer::Armed{}, now);
  After(milliseconds(1900));
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookTest, NoBoundaryInTimeDisarmsTakesThePinBackAndExpires) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  Actions();
  After(milliseconds(1980));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kDisarm));
  EXPECT_EQ(State(id), MoveState::kPlanned);
  book.OnDisarmed(id, absl::OkStatus(), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kRemovePin));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "no frame boundary within 2s");
}

TEST_F(MoveBookTest, ACommitThatBeatsTheDisarmingIsSent) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  After(milliseconds(1980));
  Actions();
  book.OnDisarmed(id, absl::FailedPreconditionError("committed meanwhile"), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  EXPECT_EQ(State(id), MoveState::kSent);
}

TEST_F(MoveBookTest, ACommitWhileDisarmingIsSentOnce) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  After(milliseconds(1980));
  Actions();
  Tell(Type::kCommitted);
  book.OnDisarmed(id, absl::FailedPreconditionError("committed meanwhile"), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
}

TEST_F(MoveBookTest, ACommitWhoseEventWasLostIsLearntFromTheTrim) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  Actions();
  book.OnArmed(id, Splicer::Armed{.refusal = Refusal::kAlreadyMoved}, now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  EXPECT_EQ(State(id), MoveState::kSent);
}

TEST_F(MoveBookTest, ARefusalSaysWhyAndTakesThePinBack) {
  for (const Refusal refusal :
       {Refusal::kUndecided, Refusal::kTls, Refusal::kHttp1, Refusal::kOpaque, Refusal::kTooYoung,
        Refusal::kNoResponse, Refusal::kClosing, Refusal::kServerGoaway, Refusal::kAlreadyMoved,
        Refusal::kLost}) {
    const MoveId id = StartAndPin();
    Actions();
    book.OnArmed(id, Splicer::Armed{.refusal = refusal}, now);
    EXPECT_THAT(Actions(), ElementsAre(Kind::kRemovePin)) << ToString(refusal);
    EXPECT_EQ(State(id), MoveState::kRefused);
    EXPECT_EQ(Detail(id), ToString(refusal));
  }
}

TEST_F(MoveBookTest, AFailedArmingIsARefusalWithTheSystemsWords) {
  const MoveId id = StartAndPin();
  Actions();
  book.OnArmed(id, absl::InternalError("run arm_goaway: Bad file descriptor"), now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kRemovePin));
  EXPECT_EQ(State(id), MoveState::kRefused);
  EXPECT_EQ(Detail(id), "run arm_goaway: Bad file descriptor");
}

TEST_F(MoveBookTest, AConnectionThatIsRecoveringIsTriedAgain) {
  const MoveId id = StartAndPin();
  Actions();
  book.OnArmed(id, Splicer::Armed{.refusal = Refusal::kBehind}, now);
  EXPECT_THAT(Actions(), IsEmpty());
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kArm));
  book.OnArmed(id, Splicer::Armed{.committed = true}, now);
  EXPECT_EQ(State(id), MoveState::kSent);
}

TEST_F(MoveBookTest, AConnectionThatDoesNotRecoverExpiresWithTheArmTimeout) {
  const MoveId id = StartAndPin();
  while (State(id) == MoveState::kPlanned && now < kStart + seconds(3)) {
    book.OnArmed(id, Splicer::Armed{.refusal = Refusal::kBehind}, now);
    After(milliseconds(20));
  }
  EXPECT_EQ(now, kStart + seconds(2));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "out of sync (recovering)");
  EXPECT_EQ(Actions().back(), Kind::kRemovePin);
}

TEST_F(MoveBookTest, AnArmedConnectionThatFallsBehindIsTrimmedLater) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  Actions();
  book.OnArmed(id, Splicer::Armed{.refusal = Refusal::kBehind}, now);
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kArmWithTrim));
}

TEST_F(MoveBookTest, AConnectionThatClosesBeforeTheCommitIsRefused) {
  const MoveId id = StartAndArm();
  Actions();
  Tell(Type::kClosed);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kRemovePin));
  EXPECT_EQ(State(id), MoveState::kRefused);
  EXPECT_EQ(Detail(id), "connection closed");
  After(seconds(3));
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookTest, APinTakenByAnotherConnectionBeforeTheCommitIsPutBack) {
  const MoveId id = StartAndArm();
  Actions();
  Tell(Type::kOpened, 41000, id, kTo);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kAddPin));
  book.OnPinned(id, absl::OkStatus(), now);
  EXPECT_THAT(Actions(), IsEmpty());  // it is armed already
  EXPECT_EQ(State(id), MoveState::kPlanned);
}

// ---- from commit to acknowledgement ----

TEST_F(MoveBookTest, TheGoawayIsResentWithBackOffUpToOneSecond) {
  const MoveId id = StartAndCommit();
  Actions();
  std::vector<int64_t> at;
  while (now < kStart + seconds(5)) {
    After(milliseconds(1));
    for (const Kind kind : Actions()) {
      ASSERT_EQ(kind, Kind::kEmit);
      book.OnEmitted(id, absl::OkStatus(), now);
      at.push_back((now - kStart) / milliseconds(1));
    }
  }
  EXPECT_THAT(at, ElementsAre(20, 60, 140, 300, 620, 1260, 2260, 3260, 4260));
  EXPECT_EQ(book.Find(id)->goaways_sent, 10u);
}

TEST_F(MoveBookTest, AHoleIsAnsweredAtOnce) {
  StartAndCommit();
  Actions();
  now += milliseconds(7);
  Tell(Type::kHole);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
}

TEST_F(MoveBookTest, AStormOfHolesIsAnsweredOncePerFiveMilliseconds) {
  StartAndCommit();
  Actions();
  size_t emitted = 0;
  for (int i = 0; i < 100; ++i) {  // 10 ms
    now += std::chrono::microseconds(100);
    Tell(Type::kHole);
    book.OnDue(now);
    emitted += Actions().size();
  }
  EXPECT_EQ(emitted, 2u);
}

TEST_F(MoveBookTest, AnEmissionThatFailsIsTriedAgain) {
  const MoveId id = StartAndPin();
  book.OnArmed(id, Splicer::Armed{.committed = true}, now);
  Actions();
  book.OnEmitted(id, absl::UnavailableError("send: No buffer space available"), now);
  EXPECT_EQ(State(id), MoveState::kSent);
  EXPECT_EQ(book.Find(id)->goaways_sent, 0u);
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
}

TEST_F(MoveBookTest, AcknowledgementEndsTheResends) {
  const MoveId id = StartAndCommit();
  Actions();
  now += milliseconds(2);
  Tell(Type::kAcknowledged);
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
  EXPECT_EQ(book.Find(id)->acknowledged, kStart + milliseconds(2));
  After(seconds(5));
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookTest, AnAcknowledgementWhoseEventWasLostIsLearntFromTheResend) {
  const MoveId id = StartAndCommit();
  After(milliseconds(20));
  book.OnEmitted(id, absl::FailedPreconditionError("acknowledged"), now);
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
}

TEST_F(MoveBookTest, AGoawayThatIsNeverAcknowledgedExpires) {
  const MoveId id = StartAndCommit();
  After(milliseconds(29999));
  EXPECT_EQ(State(id), MoveState::kSent);
  while (State(id) == MoveState::kSent && now < kStart + seconds(35)) After(milliseconds(100));
  EXPECT_LE(now, kStart + seconds(31) + milliseconds(100));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "GOAWAY not acknowledged within 30s");
  EXPECT_EQ(Actions().back(), Kind::kRemovePin);
  EXPECT_EQ(book.NextDue(), std::nullopt);
}

TEST_F(MoveBookTest, AConnectionThatClosesBeforeItAcknowledgesMayStillReconnect) {
  const MoveId id = StartAndCommit();
  Actions();
  After(milliseconds(10));
  Tell(Type::kClosed);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));  // only the sender sees who has closed
  book.OnEmitted(id, absl::NotFoundError("the client has reset the connection"), now);
  After(seconds(1));
  EXPECT_THAT(Actions(), IsEmpty());  // nobody to resend to
  Tell(Type::kOpened, 41000, id, kTo);
  EXPECT_EQ(State(id), MoveState::kReconnected);
}

TEST_F(MoveBookTest, AConnectionThatClosedUnacknowledgedAndStaysAwayExpires) {
  const MoveId id = StartAndCommit();
  After(milliseconds(20));
  book.OnEmitted(id, absl::NotFoundError("connection is gone"), now);
  After(seconds(40));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "connection closed before the GOAWAY was acknowledged");
}

TEST_F(MoveBookTest, AServerThatHasGoneDoesNotEndTheResends) {
  const MoveId id = StartAndCommit();
  Actions();
  After(milliseconds(10));
  Tell(Type::kClosed);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  book.OnEmitted(id, absl::OkStatus(), now);
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  book.OnEmitted(id, absl::OkStatus(), now);
  Tell(Type::kAcknowledged);
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
  After(seconds(1));
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookTest, AReconnectBeforeTheAcknowledgementDoesNotEndTheResends) {
  const MoveId id = StartAndCommit();
  Actions();
  Tell(Type::kOpened, 41000, id, kTo);
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  Tell(Type::kAcknowledged);
  EXPECT_EQ(State(id), MoveState::kReconnected);
  EXPECT_EQ(book.Find(id)->new_client, Key(41000).client);
}

// ---- the reconnect ----

TEST_F(MoveBookTest, TheConnectionThatTookThePinEndsTheMove) {
  const MoveId id = StartAndAcknowledge();
  Actions();
  now += milliseconds(4);
  Tell(Type::kOpened, 41000, id, kTo);
  EXPECT_EQ(State(id), MoveState::kReconnected);
  EXPECT_EQ(book.Find(id)->reconnected, kStart + milliseconds(4));
  EXPECT_EQ(book.Find(id)->new_client, Key(41000).client);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_EQ(book.NextDue(), std::nullopt);
}

TEST_F(MoveBookTest, ConnectionsWithoutAPinAreNobodysReconnect) {
  const MoveId id = StartAndAcknowledge();
  Tell(Type::kOpened, 41000, 0, kTo);
  Tell(Type::kOpened, 41001, id + 1, kTo);
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
}

TEST_F(MoveBookTest, NoReconnectWithinThePinsLifeExpires) {
  const MoveId id = StartAndAcknowledge();
  Actions();
  After(seconds(40) - milliseconds(1));
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
  After(milliseconds(1));
  EXPECT_EQ(State(id), MoveState::kExpired);
  EXPECT_EQ(Detail(id), "no new connection within 40s");
  EXPECT_THAT(Actions(), ElementsAre(Kind::kRemovePin));
}

TEST_F(MoveBookTest, ClosingTheOldConnectionAfterTheAcknowledgementIsNoNews) {
  const MoveId id = StartAndAcknowledge();
  Actions();
  Tell(Type::kClosed);
  EXPECT_EQ(State(id), MoveState::kAcknowledged);
  EXPECT_THAT(Actions(), IsEmpty());
}

}  // namespace
}  // namespace unpin
