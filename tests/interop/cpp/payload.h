// SPDX-License-Identifier: Apache-2.0
// The pseudo-random payloads of echo.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unpin::interop {

inline constexpr uint32_t kPoolBytes = 1114112;
inline constexpr uint32_t kMaxPayload = 1048576;

inline std::string MakePool() {
  std::string pool;
  pool.reserve(kPoolBytes);
  for (uint32_t word = 2463534242; pool.size() < kPoolBytes;) {
    word ^= word << 13;
    word ^= word >> 17;
    word ^= word << 5;
    for (int shift = 0; shift < 32; shift += 8) pool.push_back(static_cast<char>(word >> shift));
  }
  return pool;
}

// Requires size <= kMaxPayload.
inline std::string_view Payload(uint32_t seed, uint32_t size) {
  static const std::string pool = MakePool();
  return std::string_view(pool).substr((seed * 2654435761u) >> 16, size);
}

}  // namespace unpin::interop
