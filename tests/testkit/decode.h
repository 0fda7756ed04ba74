// SPDX-License-Identifier: Apache-2.0
// Reads frames back for a person: a second, independent parser, so that builder and data plane cannot err together.
#pragma once

#include <string>

#include <gmock/gmock.h>

#include "tests/testkit/packet.h"

namespace unpin::testkit {

// One line a header, checksums judged; what cannot be parsed is shown in hexadecimal.
std::string Decode(const Bytes& frame);

// Both frames decoded side by side; lines that differ are marked, differing bytes listed by offset.
std::string DecodedDiff(const Bytes& expected, const Bytes& actual);

// EXPECT_THAT(frame, FrameIs(Eth() / ...)): every byte, explained when it fails.
class FrameIsMatcher {
 public:
  using is_gtest_matcher = void;
  explicit FrameIsMatcher(Bytes expected) : expected_(std::move(expected)) {}
  bool MatchAndExplain(const Bytes& actual, std::ostream* out) const;
  void DescribeTo(std::ostream* out) const;
  void DescribeNegationTo(std::ostream* out) const;

 private:
  Bytes expected_;
};
inline ::testing::Matcher<const Bytes&> FrameIs(Bytes expected) {
  return FrameIsMatcher(std::move(expected));
}

}  // namespace unpin::testkit
