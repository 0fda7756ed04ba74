// SPDX-License-Identifier: Apache-2.0
// One move a connection, commits nobody asked for, and the book over many moves.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rebalance/move_book_fixture.h"
#include "userspace/rebalance/move_book.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = MoveAction::Kind;
using Type = FlowEvent::Type;

struct MoveBookManyTest : MoveBookFixture {};

TEST_F(MoveBookManyTest, AConnectionIsInOneMoveAtATime) {
  const MoveId id = StartAndArm();
  const auto again = book.Start(OrderFor(40000), now);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(again.status().message(),
            "connection 10.0.0.2:40000 is already in move " + std::to_string(id));
  EXPECT_TRUE(book.IsMoving(Key(40000)));
  EXPECT_FALSE(book.IsMoving(Key(40001)));
  Tell(Type::kClosed);
  EXPECT_FALSE(book.IsMoving(Key(40000)));
}

TEST_F(MoveBookManyTest, AReusedPortCanBeMovedWhileTheOldMoveAwaitsItsReconnect) {
  const MoveId old = StartAndAcknowledge();
  const MoveId fresh = StartAndArm();
  Tell(Type::kOpened, 41000, old, kTo);
  EXPECT_EQ(State(old), MoveState::kReconnected);
  EXPECT_TRUE(book.IsMoving(Key(40000)));
  Tell(Type::kCommitted);
  EXPECT_EQ(State(fresh), MoveState::kSent);
}

TEST_F(MoveBookManyTest, ACommitOfAMoveGivenUpIsAdopted) {
  const MoveId id = StartAndArm();
  After(milliseconds(20));
  After(seconds(2));
  book.OnDisarmed(id, absl::InternalError("run disarm_goaway: Bad file descriptor"), now);
  ASSERT_EQ(State(id), MoveState::kExpired);
  Actions();
  Tell(Type::kCommitted);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
}

TEST_F(MoveBookManyTest, AHoleLongAfterTheMoveExpiredIsFilled) {
  const MoveId id = StartAndCommit();
  while (State(id) == MoveState::kSent) After(seconds(1));
  Actions();
  Tell(Type::kHole);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
}

TEST_F(MoveBookManyTest, AHoleReportedLateStartsNothing) {
  StartAndAcknowledge();
  Actions();
  Tell(Type::kHole);
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(MoveBookManyTest, AnAdoptedConnectionsGoawayIsResentUntilAcknowledged) {
  book.Adopt(Key(40000), kService, kFrom, now);
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  After(milliseconds(20));
  EXPECT_THAT(Actions(), ElementsAre(Kind::kEmit));
  Tell(Type::kAcknowledged);
  EXPECT_EQ(book.Newest(std::nullopt, 1).at(0).state, MoveState::kAcknowledged);
}

TEST_F(MoveBookManyTest, AnAdoptedMoveIsMatchedByItsClientAsItsPinsIdIsNotKnown) {
  book.Adopt(Key(40000), kService, kFrom, now);
  Tell(Type::kAcknowledged);
  Tell(Type::kOpened, 41000, 777, kTo);
  const Move move = book.Newest(std::nullopt, 1).at(0);
  EXPECT_EQ(move.state, MoveState::kReconnected);
  EXPECT_EQ(move.to, kTo);
}

TEST_F(MoveBookManyTest, AdoptingTwiceIsOneMove) {
  book.Adopt(Key(40000), kService, kFrom, now);
  book.Adopt(Key(40000), kService, kFrom, now);
  EXPECT_EQ(book.Newest(std::nullopt, 10).size(), 1u);
}

TEST_F(MoveBookManyTest, EachChangeOfStateIsToldInOrder) {
  const MoveId id = StartAndAcknowledge();
  Tell(Type::kOpened, 41000, id, kTo);
  std::vector<MoveState> told;
  for (const Move& move : book.Take().changed) told.push_back(move.state);
  EXPECT_THAT(told, ElementsAre(MoveState::kPlanned, MoveState::kSent, MoveState::kAcknowledged,
                                MoveState::kReconnected));
}

TEST_F(MoveBookManyTest, CountsTheMovesOnTheirWayToABackend) {
  const MoveId one = StartAndAcknowledge(40000);
  StartAndArm(40001);
  EXPECT_EQ(book.Incoming(kTo), 2u);
  EXPECT_EQ(book.Incoming(kFrom), 0u);
  Tell(Type::kOpened, 41000, one, kTo);
  EXPECT_EQ(book.Incoming(kTo), 1u);
  Tell(Type::kClosed, 40001);
  EXPECT_EQ(book.Incoming(kTo), 0u);
}

TEST_F(MoveBookManyTest, KeepsTheNewestTenThousandEndedMovesAndEveryUnendedOne) {
  const MoveId unended = StartAndAcknowledge(39999);
  for (size_t i = 0; i < MoveBook::kEndedKept + 50; ++i) {
    const MoveId id = StartAndPin();
    book.OnArmed(id, Splicer::Armed{.refusal = Refusal::kTls}, now);
  }
  EXPECT_EQ(book.Newest(std::nullopt, 1'000'000).size(), MoveBook::kEndedKept + 1);
  EXPECT_NE(book.Find(unended), nullptr);
  EXPECT_EQ(book.Find(unended + 50), nullptr);
  EXPECT_NE(book.Find(unended + 51), nullptr);
}

TEST_F(MoveBookManyTest, ListsNewestFirstAndByService) {
  const MoveId first = Start(40000);
  const MoveId second = Start(40001);
  const auto all = book.Newest(std::nullopt, 10);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, second);
  EXPECT_EQ(all[1].id, first);
  EXPECT_EQ(book.Newest(std::nullopt, 1).size(), 1u);
  EXPECT_THAT(book.Newest(kService + 1, 10), IsEmpty());
}

}  // namespace
}  // namespace unpin
