// SPDX-License-Identifier: Apache-2.0
// How fast a drain moves connections. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "userspace/base/clock.h"

namespace unpin {

// How many of the `waiting` moves to start now, if the next chance comes after `step` and the drain's
// window ends in `left`: an even share, at least one, and all of them once no further step fits.
inline size_t MovesDue(size_t waiting, Duration left, Duration step) {
  if (waiting == 0) return 0;
  if (left <= step) return waiting;
  const double share = static_cast<double>(step.count()) / static_cast<double>(left.count());
  return std::max<size_t>(1, static_cast<size_t>(std::floor(waiting * share)));
}

}  // namespace unpin
