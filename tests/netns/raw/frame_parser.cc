// SPDX-License-Identifier: Apache-2.0
#include "tests/netns/raw/frame_parser.h"

#include <algorithm>

namespace unpin::raw {

void FrameParser::Feed(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const size_t step = std::min<uint64_t>(skip_, bytes.size());
      skip_ -= step;
      bytes = bytes.subspan(step);
      continue;
    }
    header_[header_length_++] = bytes.front();
    bytes = bytes.subspan(1);
    if (header_length_ == sizeof(header_)) OnHeader();
  }
}

void FrameParser::OnHeader() {
  const uint8_t type = header_[3];
  const bool end_headers = header_[4] & 0x4;
  if (type == 4 && !(header_[4] & 0x1)) settings_seen_ = true;
  if (type == 1 || type == 5 || type == 9) block_open_ = !end_headers;
  skip_ = uint64_t{header_[0]} << 16 | uint64_t{header_[1]} << 8 | header_[2];
  header_length_ = 0;
}

}  // namespace unpin::raw
