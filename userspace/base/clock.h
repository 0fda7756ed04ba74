// SPDX-License-Identifier: Apache-2.0
// Time as an argument: CLOCK_MONOTONIC, which the data plane stamps too; wall time only for display.
#pragma once

#include <chrono>

namespace unpin {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline TimePoint Now() { return std::chrono::steady_clock::now(); }

// The wall time at which the monotonic clock showed `t`.
inline WallTime ToWallTime(TimePoint t) {
  return std::chrono::system_clock::now() + (t - Now());
}

}  // namespace unpin
