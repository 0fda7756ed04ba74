// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/gap_reassembler.h"

#include <algorithm>
#include <iterator>

#include "bpf/http2.h"

namespace unpin {
namespace {

// Map node and vector of a chunk, with the allocator's own: a rough upper bound.
constexpr size_t kChunkOverhead = 112;

int64_t EndOf(const std::pair<const int64_t, std::vector<uint8_t>>& chunk) {
  return chunk.first + static_cast<int64_t>(chunk.second.size());
}

}  // namespace

GapReassembler::GapReassembler(const unpin_follower& start)
    : follower_(start), highest_seen_(PositionOf(start.highest_seen)) {}

void GapReassembler::Add(uint32_t sequence, std::span<const uint8_t> bytes) {
  const int64_t position = PositionOf(sequence);
  const int64_t end = position + static_cast<int64_t>(bytes.size());
  highest_seen_ = std::max(highest_seen_, end);
  if (end <= need_) return;
  Keep(position, bytes);
  Advance();
}

void GapReassembler::RaiseHighestSeen(uint32_t highest_seen) {
  highest_seen_ = std::max(highest_seen_, PositionOf(highest_seen));
}

bool GapReassembler::caught_up() const {
  return need_ >= highest_seen_ || !http2_follows(&follower_);
}

size_t GapReassembler::memory_bytes() const {
  return buffered_bytes_ + chunks_.size() * kChunkOverhead;
}

int64_t GapReassembler::PositionOf(uint32_t sequence) const {
  return need_ + static_cast<int32_t>(sequence - http2_need(&follower_));
}

void GapReassembler::Keep(int64_t position, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    size_t length = bytes.size();
    if (const auto covering = FindChunkAt(position); covering != chunks_.end()) {
      length = std::min(length, static_cast<size_t>(EndOf(*covering) - position));
    } else {
      const auto next = chunks_.lower_bound(position);
      if (next != chunks_.end()) {
        length = std::min(length, static_cast<size_t>(next->first - position));
      }
      const auto part = bytes.first(length);
      chunks_.emplace_hint(next, position, std::vector<uint8_t>(part.begin(), part.end()));
      buffered_bytes_ += length;
    }
    position += static_cast<int64_t>(length);
    bytes = bytes.subspan(length);
  }
}

void GapReassembler::Advance() {
  for (auto chunk = FindChunkAt(need_); chunk != chunks_.end() && http2_follows(&follower_);
       chunk = FindChunkAt(need_)) {
    const auto& [position, bytes] = *chunk;
    const uint32_t before = http2_need(&follower_);
    const uint32_t sequence = before - static_cast<uint32_t>(need_ - position);
    http2_feed_bytes(&follower_, sequence, bytes.data(), static_cast<uint32_t>(bytes.size()));
    need_ += static_cast<int32_t>(http2_need(&follower_) - before);
  }
  while (!chunks_.empty() && EndOf(*chunks_.begin()) <= need_) {
    buffered_bytes_ -= chunks_.begin()->second.size();
    chunks_.erase(chunks_.begin());
  }
}

GapReassembler::Chunks::const_iterator GapReassembler::FindChunkAt(int64_t position) const {
  const auto next = chunks_.upper_bound(position);
  if (next == chunks_.begin()) return chunks_.end();
  const auto chunk = std::prev(next);
  return EndOf(*chunk) > position ? chunk : chunks_.end();
}

}  // namespace unpin
