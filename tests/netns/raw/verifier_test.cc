// SPDX-License-Identifier: Apache-2.0
// The checker catches what it is there to catch. The streams are put together here; each fault is put in by hand.
#include "tests/netns/raw/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testkit/http2_frames.h"

namespace unpin::raw {
namespace {

using testing::HasSubstr;
using testkit::Concat;
using testkit::http2::Goaway;

// A server's stream of `frames` frames and the last marker, and where in it a GOAWAY may stand and may not.
struct Stream {
  Bytes bytes;
  std::vector<size_t> clean;
  std::vector<size_t> in_block;
  std::vector<size_t> in_frame;  // in the middle of frames outside header blocks
};

Stream ServerStream(uint64_t seed, int frames) {
  FrameSource source(Side::kServer, seed);
  Stream stream;
  for (int i = 0; i < frames || !source.at_clean_boundary(); ++i) {
    const Bytes frame = source.Next();
    if (i > 0 && source.at_clean_boundary())
      stream.in_frame.push_back(stream.bytes.size() + frame.size() / 2);
    stream.bytes = Concat(stream.bytes, frame);
    (source.at_clean_boundary() ? stream.clean : stream.in_block).push_back(stream.bytes.size());
  }
  stream.bytes = Concat(stream.bytes, MarkerFrame(kFinish, stream.bytes.size()));
  return stream;
}

Bytes Insert(Bytes bytes, size_t at, const Bytes& what) {
  bytes.insert(bytes.begin() + static_cast<long>(at), what.begin(), what.end());
  return bytes;
}

// Verified in pieces of random sizes, ended by FIN.
absl::Status Verify(uint64_t seed, const Bytes& bytes) {
  Verifier verifier(Side::kServer, seed);
  Random random(seed ^ bytes.size());
  std::span<const uint8_t> left(bytes);
  while (!left.empty()) {
    const size_t step =
        std::min<size_t>(left.size(), random.Between(1, random.OneIn(3) ? 8 : 3000));
    if (absl::Status status = verifier.Take(left.first(step)); !status.ok()) return status;
    left = left.subspan(step);
  }
  return verifier.End();
}

class VerifierTest : public testing::TestWithParam<uint64_t> {
 protected:
  const uint64_t seed_ = GetParam();
  const Stream stream_ = ServerStream(seed_, 60);

  std::string WhyWrong(const Bytes& bytes) const {
    const absl::Status status = Verify(seed_, bytes);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }
};

TEST_P(VerifierTest, AGoawayAtAnyCleanBoundaryIsRight) {
  for (const size_t at : stream_.clean)
    EXPECT_EQ(Verify(seed_, Insert(stream_.bytes, at, Goaway())), absl::OkStatus()) << at;
}

TEST_P(VerifierTest, AGoawayInsideAHeaderBlockIsFound) {
  ASSERT_FALSE(stream_.in_block.empty());
  for (const size_t at : stream_.in_block) {
    EXPECT_THAT(WhyWrong(Insert(stream_.bytes, at, Goaway())),
                HasSubstr("GOAWAY inside a header block"));
  }
}

TEST_P(VerifierTest, AGoawayInsideAFrameIsFound) {
  for (const size_t at : stream_.in_frame) WhyWrong(Insert(stream_.bytes, at, Goaway()));
}

TEST_P(VerifierTest, AGoawayBeforeSettingsIsFound) { WhyWrong(Insert(stream_.bytes, 0, Goaway())); }

TEST_P(VerifierTest, ASecondGoawayIsFound) {
  for (const size_t at : stream_.clean) {
    const Bytes once = Insert(stream_.bytes, stream_.clean.front(), Goaway());
    EXPECT_THAT(WhyWrong(Insert(once, at + kSpecialFrame, Goaway())), HasSubstr("second GOAWAY"));
  }
}

TEST_P(VerifierTest, AMissingGoawayIsFound) {
  EXPECT_TRUE(absl::IsNotFound(Verify(seed_, stream_.bytes)));
}

TEST_P(VerifierTest, AnotherGoawayThanOursIsFound) {
  for (const Bytes& other : {Goaway(1), Goaway(0x7fffffff, 2), Goaway(0xffffffff)}) {
    WhyWrong(Insert(stream_.bytes, stream_.clean.back(), other));
  }
}

TEST_P(VerifierTest, EveryChangedByteIsFound) {
  const Bytes right = Insert(stream_.bytes, stream_.clean[stream_.clean.size() / 2], Goaway());
  Random random(seed_);
  for (int i = 0; i < 200; ++i) {
    Bytes wrong = right;
    wrong[random.Between(0, static_cast<uint32_t>(wrong.size() - 1))] ^=
        static_cast<uint8_t>(1 << random.Between(0, 7));
    const absl::Status status = Verify(seed_, wrong);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST_P(VerifierTest, AShiftIsFound) {
  const size_t boundary = stream_.clean[stream_.clean.size() / 2];
  const Bytes right = Insert(stream_.bytes, boundary, Goaway());
  // 17 bytes of the stream in the place of the GOAWAY, or the GOAWAY over 17 bytes of the stream.
  Bytes lost = right;
  lost.erase(lost.begin() + static_cast<long>(boundary + kSpecialFrame),
             lost.begin() + static_cast<long>(boundary + 2 * kSpecialFrame));
  WhyWrong(lost);
  Bytes one_more = right;
  one_more.insert(one_more.begin() + static_cast<long>(boundary + 30), one_more[boundary + 30]);
  Bytes one_less = right;
  one_less.erase(one_less.begin() + static_cast<long>(boundary - 3));
  EXPECT_FALSE(Verify(seed_, one_less).ok());
  EXPECT_FALSE(Verify(seed_, one_more).ok());
}

TEST_P(VerifierTest, AnEarlyOrALateEndIsFound) {
  const Bytes right = Insert(stream_.bytes, stream_.clean.front(), Goaway());
  EXPECT_THAT(WhyWrong(Bytes(right.begin(), right.end() - 1)), HasSubstr("FIN before"));
  EXPECT_THAT(WhyWrong(Bytes(right.begin(), right.end() - kSpecialFrame)), HasSubstr("FIN before"));
  EXPECT_THAT(WhyWrong(Concat(right, Bytes{0})), HasSubstr("after the last frame"));
}

TEST_P(VerifierTest, MarkersSayWhereTheyStand) {
  const Bytes right = Insert(stream_.bytes, stream_.clean.front(), Goaway());
  const Bytes body(right.begin(), right.end() - kSpecialFrame);
  WhyWrong(
      Concat(body, MarkerFrame(kFinish, body.size())));  // as if the GOAWAY had been the server's
}

TEST(ClientStreamTest, AGoawayTowardsTheServerIsFound) {
  FrameSource source(Side::kClient, 5);
  const Bytes opening = source.Next();
  ASSERT_EQ(opening.size(), kClientOpening);
  Verifier verifier(Side::kClient, 5);
  EXPECT_EQ(verifier.Take(opening), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(verifier.Take(Goaway())));
}

TEST(ClientStreamTest, TheOpeningCarriesTheSeed) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{77}, uint64_t{0x0123456789abcdef}}) {
    const Bytes bytes = FrameSource(Side::kClient, seed).Next();
    uint8_t opening[kClientOpening];
    std::copy(bytes.begin(), bytes.end(), opening);
    EXPECT_EQ(SeedOf(opening), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, VerifierTest, testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace unpin::raw
