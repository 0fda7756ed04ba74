// SPDX-License-Identifier: Apache-2.0
#include "tests/netns/raw/verifier.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace unpin::raw {
namespace {

constexpr size_t kUpToType = 4;
constexpr uint8_t kGoawayType = 7;
// RFC 9113 section 6.8: last stream id 2^31-1, NO_ERROR.
constexpr uint8_t kGoaway[kSpecialFrame] = {0,    0,    8,    7,    0, 0, 0, 0, 0,
                                            0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};

}  // namespace

Verifier::Verifier(Side sender, uint64_t seed)
    : sender_(sender),
      source_(sender, seed),
      parser_(sender == Side::kClient ? 24 : 0),
      expected_(source_.Next()) {}

absl::Status Verifier::Take(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (is_finished_ && matched_ == expected_.size()) return Wrong("bytes after the last frame");
    if (matched_ == expected_.size()) {
      if (absl::Status status = TakeAtBoundary(bytes); !status.ok()) return status;
      continue;
    }
    const size_t step = std::min(bytes.size(), expected_.size() - matched_);
    if (absl::Status status = Compare(bytes.first(step)); !status.ok()) return status;
    bytes = bytes.subspan(step);
  }
  return absl::OkStatus();
}

// One frame has ended. Which the next one is to be is known with its type.
absl::Status Verifier::TakeAtBoundary(std::span<const uint8_t>& bytes) {
  if (held_.empty() && parser_.IsCleanBoundary() != source_.at_clean_boundary()) {
    return Wrong("parser and source disagree on where a clean boundary is");
  }
  const size_t step = std::min(bytes.size(), kUpToType - held_.size());
  held_.insert(held_.end(), bytes.begin(), bytes.begin() + static_cast<long>(step));
  bytes = bytes.subspan(step);
  if (held_.size() < kUpToType) return absl::OkStatus();
  if (absl::Status status = Expect(held_[3]); !status.ok()) return status;
  const Bytes held = std::exchange(held_, {});
  return Compare(held);
}

absl::Status Verifier::Expect(uint8_t type) {
  matched_ = 0;
  if (type == kGoawayType) {
    // The independent parser's word alone decides whether this place is one for a GOAWAY.
    if (sender_ == Side::kClient) return Wrong("GOAWAY towards the server");
    if (!parser_.IsCleanBoundary()) {
      return Wrong(parser_.block_open() ? "GOAWAY inside a header block"
                                        : "GOAWAY before SETTINGS");
    }
    if (goaway_at_) return Wrong("a second GOAWAY");
    goaway_at_ = received_;
    expected_.assign(std::begin(kGoaway), std::end(kGoaway));
  } else if (source_.at_clean_boundary() && (type == kGo || type == kFinish)) {
    expected_ = MarkerFrame(static_cast<Marker>(type), SentBefore());
    (type == kGo ? has_go_ : is_finished_) = true;
  } else {
    expected_ = source_.Next();
  }
  return absl::OkStatus();
}

absl::Status Verifier::Compare(std::span<const uint8_t> bytes) {
  const auto expected = expected_.begin() + static_cast<long>(matched_);
  const auto [wrong, right] = std::mismatch(bytes.begin(), bytes.end(), expected);
  if (wrong != bytes.end()) {
    received_ += static_cast<uint64_t>(wrong - bytes.begin());
    return Wrong(absl::StrCat(
        "byte ", right - expected_.begin(), " of a frame of ", expected_.size(), ", type ",
        expected_[std::min<size_t>(3, expected_.size() - 1)], ", is ", *wrong, " and not ", *right,
        parser_.block_open() ? ", inside a header block" : ""));
  }
  parser_.Feed(bytes);
  matched_ += bytes.size();
  received_ += bytes.size();
  return absl::OkStatus();
}

absl::Status Verifier::End() const {
  if (!is_finished_ || matched_ != expected_.size() || !held_.empty())
    return Wrong("FIN before the last frame's end");
  if (sender_ == Side::kServer && !goaway_at_) return absl::NotFoundError("no GOAWAY has come");
  return absl::OkStatus();
}

absl::Status Verifier::Wrong(const std::string& what) const {
  return absl::DataLossError(
      absl::StrCat(what, ", at offset ", received_,
                   goaway_at_ ? absl::StrCat(", GOAWAY at ", *goaway_at_) : ", no GOAWAY yet"));
}

}  // namespace unpin::raw
