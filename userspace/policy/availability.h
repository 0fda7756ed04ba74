// SPDX-License-Identifier: Apache-2.0
// Which backends of a service are offered to new connections, and which are given up. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "userspace/model/health.h"
#include "userspace/model/ports.h"

namespace unpin {

struct BackendCondition {
  bool wanted = true;  // weight above 0 and not draining
  Health health = Health::kUp;
  bool ejected = false;  // an outlier, for now
};

// Under so many percent that are up, probes are not believed (Envoy's panic threshold).
inline constexpr size_t kPanicPercent = 50;

// A state for each. Offered (kServing) are those wanted and up. In panic all but those that refuse connections, since
// that is no opinion; and if nobody would be left, whoever is there. Given up (kDown), their connections reset, are only
// silent ones, and not in panic: all others can speak for themselves and keep what they have (kDraining).
std::vector<BackendRow::State> Availability(std::span<const BackendCondition> backends);

}  // namespace unpin
