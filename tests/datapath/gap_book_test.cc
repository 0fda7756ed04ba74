// SPDX-License-Identifier: Apache-2.0
// The life of gaps, against a data plane played by hand.
#include "userspace/datapath/gap_book.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace unpin {
namespace {

using std::chrono::seconds;

constexpr uint8_t kPingFrame[17] = {0, 0, 8,
                                    6};  // RFC 9113 section 6.7: length 8, type 6, stream 0
constexpr TimePoint kStart{seconds(100)};

unpin_flow_key Key(uint16_t port) {
  return {.source = 1, .destination = 2, .source_port = port, .destination_port = 3};
}

// A whole frame at `sequence`, of a gap that began at 1000.
unpin_capture Capture(uint32_t epoch, uint32_t sequence) {
  unpin_capture capture = {};
  capture.key = Key(1);
  capture.start.next_header = 1000;
  capture.start.highest_seen = 1034;
  capture.start.epoch = epoch;
  capture.start.protocol = UNPIN_PROTOCOL_H2;
  capture.start.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
  capture.sequence = sequence;
  capture.length = sizeof(kPingFrame);
  std::copy(std::begin(kPingFrame), std::end(kPingFrame), capture.bytes);
  return capture;
}

// 1,460 bytes that no header of the gap lies in.
unpin_capture Useless(uint32_t epoch, uint32_t index) {
  unpin_capture capture = Capture(epoch, 2000 + index * UNPIN_CAPTURE_BYTES);
  capture.length = UNPIN_CAPTURE_BYTES;
  return capture;
}

class GapBookTest : public testing::Test {
 protected:
  GapBook Book(RecoveryLimits limits) {
    return GapBook(
        [this](const unpin_restore_args& args) -> absl::StatusOr<unpin_restore_args> {
          asked_.push_back(args);
          if (!error_.ok()) return error_;
          unpin_restore_args result = args;
          result.result = answer_;
          result.highest_seen = highest_seen_;
          return result;
        },
        limits);
  }

  std::vector<unpin_restore_args> asked_;
  uint32_t answer_ = UNPIN_RESTORE_DONE;
  uint32_t highest_seen_ = 0;
  absl::Status error_;
  GapBook book_ = Book({});
};

TEST_F(GapBookTest, HandsBackAFilledGapOnce) {
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());
  EXPECT_TRUE(asked_.empty());
  EXPECT_GT(book_.memory_bytes(), 0u);
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1000), kStart).ok());
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].key.source_port, Key(1).source_port);
  EXPECT_EQ(asked_[0].follower.next_header, 1034u);
  EXPECT_EQ(asked_[0].follower.epoch, 7u);
  EXPECT_EQ(asked_[0].give_up, 0u);
  EXPECT_EQ(book_.counts().recovered, 1u);
  EXPECT_EQ(book_.memory_bytes(), 0u);

  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());  // was still in the ring
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_EQ(book_.counts().gaps, 1u);
}

TEST_F(GapBookTest, TriesAgainWithWhatArrivedMeanwhile) {
  answer_ = UNPIN_RESTORE_MISSING;
  highest_seen_ = 1051;
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1000), kStart).ok());
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());
  ASSERT_EQ(asked_.size(), 1u);
  answer_ = UNPIN_RESTORE_DONE;
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());  // nothing new: no use in asking
  EXPECT_EQ(asked_.size(), 1u);
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1034), kStart).ok());
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[1].follower.next_header, 1051u);
  EXPECT_EQ(book_.counts().retried, 1u);
  EXPECT_EQ(book_.counts().recovered, 1u);
}

TEST_F(GapBookTest, ForgetsAStaleGap) {
  answer_ = UNPIN_RESTORE_STALE;
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1000), kStart).ok());
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());
  EXPECT_EQ(book_.counts().stale, 1u);
  EXPECT_EQ(book_.memory_bytes(), 0u);
  ASSERT_TRUE(book_.GiveUpOld(kStart + seconds(11)).ok());
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(GapBookTest, EpochsAndFlowsAreApart) {
  unpin_capture of_other_flow = Capture(7, 1000);
  of_other_flow.key = Key(2);
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());
  ASSERT_TRUE(book_.OnCapture(Capture(8, 1000), kStart).ok());
  ASSERT_TRUE(book_.OnCapture(of_other_flow, kStart).ok());
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(book_.counts().gaps, 3u);
}

TEST_F(GapBookTest, GivesUpWhatIsTooOld) {
  ASSERT_TRUE(book_.OnCapture(Useless(7, 0), kStart).ok());
  ASSERT_TRUE(book_.OnCapture(Useless(8, 0), kStart + seconds(5)).ok());
  ASSERT_TRUE(book_.GiveUpOld(kStart + seconds(9)).ok());
  EXPECT_TRUE(asked_.empty());
  ASSERT_TRUE(book_.GiveUpOld(kStart + seconds(10)).ok());
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].give_up, 1u);
  EXPECT_EQ(asked_[0].follower.epoch, 7u);
  EXPECT_EQ(book_.counts().given_up, 1u);
}

TEST_F(GapBookTest, GivesUpAGapThatGrowsTooLarge) {
  book_ = Book({.bytes_per_gap = 10 * UNPIN_CAPTURE_BYTES});
  for (uint32_t i = 0; i < 9; ++i) ASSERT_TRUE(book_.OnCapture(Useless(7, i), kStart).ok());
  EXPECT_TRUE(asked_.empty());
  for (uint32_t i = 9; i < 11; ++i) ASSERT_TRUE(book_.OnCapture(Useless(7, i), kStart).ok());
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].give_up, 1u);
  EXPECT_EQ(book_.memory_bytes(), 0u);
}

TEST_F(GapBookTest, BoundsTheMemoryOfAllGaps) {
  book_ = Book({.bytes_in_all = 100'000});
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(book_.OnCapture(Useless(1 + i % 50, i / 50), kStart).ok());
    ASSERT_LE(book_.memory_bytes(), 100'000u);
  }
  EXPECT_GT(book_.counts().given_up, 0u);
}

TEST_F(GapBookTest, SurvivesAFailingKernelAndAsksAgain) {
  error_ = absl::UnavailableError("no memory");
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1017), kStart).ok());
  EXPECT_FALSE(book_.OnCapture(Capture(7, 1000), kStart).ok());
  error_ = absl::OkStatus();
  ASSERT_TRUE(book_.OnCapture(Capture(7, 1000), kStart).ok());
  EXPECT_EQ(book_.counts().recovered, 1u);
}

TEST_F(GapBookTest, DoesNotTrustALengthBeyondTheRecord) {
  unpin_capture capture = Useless(7, 0);
  capture.length = 65535;
  ASSERT_TRUE(book_.OnCapture(capture, kStart).ok());
  EXPECT_LT(book_.memory_bytes(), 2u * UNPIN_CAPTURE_BYTES);
}

}  // namespace
}  // namespace unpin
