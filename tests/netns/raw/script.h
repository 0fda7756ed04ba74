// SPDX-License-Identifier: Apache-2.0
// What the two ends of a connection do, drawn by both from its seed: how much, and at which pace.
#pragma once

#include <chrono>
#include <cstdint>

#include "tests/netns/raw/frame_source.h"
#include "tests/netns/raw/random.h"

namespace unpin::raw {

enum class Style {
  kIdle,      // silent from the prologue until the GOAWAY
  kSteady,    // a write every few milliseconds
  kStalling,  // pauses of up to 60 ms anywhere, also inside header blocks and frame headers
  kRushing,   // as fast as it goes
};
constexpr int kStyles = 4;

// One side's part. Bytes are least amounts: a part ends at the next clean boundary.
struct Script {
  Style style = Style::kIdle;
  uint64_t prologue = 0;
  uint64_t epilogue = 0;  // after the GOAWAY
};

inline Script ScriptOf(Side side, uint64_t seed) {
  constexpr Style kByDraw[] = {Style::kIdle,   Style::kIdle,   Style::kIdle,     Style::kIdle,
                               Style::kSteady, Style::kSteady, Style::kStalling, Style::kRushing};
  Random both(seed ^ 0x5c819700);
  Script script;
  script.style = kByDraw[both.Between(0, 7)];
  Random own(both.Next() + (side == Side::kServer ? 1 : 0));
  script.prologue = own.OneIn(8) ? own.Between(100'000, 400'000) : own.Between(0, 30'000);
  // A few go on for megabytes: the translation has to hold.
  script.epilogue = own.OneIn(8) ? own.Between(1'000'000, 4'000'000) : own.Between(0, 400'000);
  if (side == Side::kClient) script.epilogue /= 4;
  return script;
}

// How long a peer waits before its next write; not the same on every run.
inline std::chrono::microseconds PauseOf(Style style, Random& random) {
  switch (style) {
    case Style::kSteady:
      return std::chrono::microseconds(random.Between(0, 4000));
    case Style::kStalling:
      return std::chrono::microseconds(random.OneIn(10) ? random.Between(5000, 60'000) : 0);
    case Style::kIdle:
    case Style::kRushing:
      return std::chrono::microseconds(0);
  }
  return std::chrono::microseconds(0);
}

}  // namespace unpin::raw
