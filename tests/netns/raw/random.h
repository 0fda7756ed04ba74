// SPDX-License-Identifier: Apache-2.0
// Numbers that both ends of a connection draw alike from its seed (splitmix64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace unpin::raw {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  // Both ends included.
  uint32_t Between(uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(Next() % (uint64_t{most} - least + 1));
  }
  bool OneIn(uint32_t n) { return Next() % n == 0; }
  void Fill(uint8_t* bytes, size_t size) {
    for (; size >= 8; bytes += 8, size -= 8) {
      const uint64_t word = Next();
      std::memcpy(bytes, &word, 8);
    }
    const uint64_t word = Next();
    std::memcpy(bytes, &word, size);
  }

 private:
  uint64_t state_;
};

}  // namespace unpin::raw
