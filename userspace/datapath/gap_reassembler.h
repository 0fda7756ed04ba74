// SPDX-License-Identifier: Apache-2.0
// Follows HTTP/2 frames through the bytes that the data plane saw out of order. Pure: no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "bpf/abi.h"

namespace unpin {

// One gap of one flow: starts in the state in which the data plane lost track, takes segments in any
// order, as often as they come, and steps from frame header to frame header. Bytes inside a frame are
// neither kept nor waited for once its header is known. Sequence numbers may wrap; segments must lie
// within 2^31 of the byte waited for.
class GapReassembler {
 public:
  explicit GapReassembler(const unpin_follower& start);

  void Add(uint32_t sequence, std::span<const uint8_t> bytes);

  // The data plane has seen bytes up to `highest_seen` (exclusive), whether or not they came here.
  void RaiseHighestSeen(uint32_t highest_seen);

  // Nothing that the data plane has seen is still to be followed.
  bool caught_up() const;

  const unpin_follower& follower() const { return follower_; }

  // What the kept segments cost, their bookkeeping included.
  size_t memory_bytes() const;

 private:
  // A position is a sequence number counted on beyond 32 bits, so that positions sort.
  using Chunks = std::map<int64_t, std::vector<uint8_t>>;

  int64_t PositionOf(uint32_t sequence) const;
  void Keep(int64_t position, std::span<const uint8_t> bytes);
  void Advance();
  Chunks::const_iterator FindChunkAt(int64_t position) const;

  unpin_follower follower_;
  int64_t need_ = 0;      // position of the first byte the follower waits for
  int64_t highest_seen_;  // position
  Chunks chunks_;         // by position of the first byte; no two overlap
  size_t buffered_bytes_ = 0;
};

}  // namespace unpin
