// SPDX-License-Identifier: Apache-2.0
// Compares what is received, byte by byte, with what the other end's frame source makes. Beside that stream only this
// may stand, at clean boundaries: the markers, and towards a client one GOAWAY.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "tests/netns/raw/frame_parser.h"
#include "tests/netns/raw/frame_source.h"

namespace unpin::raw {

class Verifier {
 public:
  // `sender`: whose bytes are received. Only a server's may contain a GOAWAY, and then must.
  Verifier(Side sender, uint64_t seed);

  // DataLoss at the first byte that is not as it must be; after that, nothing more may be taken.
  absl::Status Take(std::span<const uint8_t> bytes);
  // At FIN: DataLoss if something is missing.
  absl::Status End() const;

  uint64_t received() const { return received_; }
  std::optional<uint64_t> goaway_at() const { return goaway_at_; }
  bool has_go() const { return has_go_; }

 private:
  absl::Status TakeAtBoundary(std::span<const uint8_t>& bytes);
  absl::Status Expect(uint8_t type);
  absl::Status Compare(std::span<const uint8_t> bytes);
  absl::Status Wrong(const std::string& what) const;
  uint64_t SentBefore() const { return received_ - (goaway_at_ ? kSpecialFrame : 0); }

  Side sender_;
  FrameSource source_;
  FrameParser parser_;
  Bytes expected_;
  size_t matched_ = 0;  // bytes of expected_
  Bytes held_;          // the beginning of a frame whose type is not yet known
  uint64_t received_ = 0;
  std::optional<uint64_t> goaway_at_;
  bool has_go_ = false;
  bool is_finished_ = false;
};

}  // namespace unpin::raw
