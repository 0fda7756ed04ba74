// SPDX-License-Identifier: Apache-2.0
// When a backend is probed next. Pure: time and chance are arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "userspace/model/service.h"

namespace unpin {

struct ProbeRecord {
  TimePoint begun;        // of the last probe
  uint32_t failures = 0;  // on end, the last one included
};

// One interval after the last probe began, 10 % more or less so that the probes of many backends do not march in step
// (`chance` in [0, 1)). While failures are too few to be believed the next one comes after a timeout's time: a lost host is
// known after interval + fall * timeout, not after fall * interval.
inline TimePoint NextProbe(const ProbeRecord& last, const HealthSettings& settings, double chance) {
  const auto regular =
      std::chrono::duration_cast<Duration>(settings.interval * (0.9 + 0.2 * chance));
  const bool in_doubt = last.failures > 0 && last.failures < settings.fall;
  return last.begun + (in_doubt ? std::min(regular, settings.timeout) : regular);
}

}  // namespace unpin
