// SPDX-License-Identifier: Apache-2.0
// Finds the clean boundaries in received bytes, knowing RFC 9113 and nothing of who made the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unpin::raw {

class FrameParser {
 public:
  // `skipped`: bytes before the first frame, the client's preface.
  explicit FrameParser(size_t skipped) : skip_(skipped) {}

  void Feed(std::span<const uint8_t> bytes);

  // Between two frames, after the first SETTINGS, and no header block is open (sections 3.4, 6.10).
  bool IsCleanBoundary() const {
    return skip_ == 0 && header_length_ == 0 && settings_seen_ && !block_open_;
  }
  bool block_open() const { return block_open_; }

 private:
  void OnHeader();

  uint64_t skip_;  // up to the next header
  uint8_t header_[9] = {};
  size_t header_length_ = 0;
  bool settings_seen_ = false;
  bool block_open_ = false;
};

}  // namespace unpin::raw
