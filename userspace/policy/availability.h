// SPDX-License-Identifier: Apache-2.0
// Which backends of a service are offered to new connections. Pure.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "userspace/model/ports.h"

namespace unpin {

struct BackendCondition {
  bool wanted = true;    // weight above 0 and not draining
  bool up = true;        // what its probes say
  bool ejected = false;  // an outlier, for now
};

// Under so many percent that are up, their probes are not believed: all are offered (Envoy's panic threshold).
inline constexpr size_t kPanicPercent = 50;

// A state for each. Draining and ejected backends keep their connections; those that are down lose them.
inline std::vector<BackendRow::State> Availability(std::span<const BackendCondition> backends) {
  const auto wanted =
      static_cast<size_t>(std::ranges::count_if(backends, &BackendCondition::wanted));
  const auto up = static_cast<size_t>(
      std::ranges::count_if(backends, [](const BackendCondition& b) { return b.wanted && b.up; }));
  const bool panic = up * 100 < wanted * kPanicPercent;
  const bool any_left = std::ranges::any_of(backends, [&](const BackendCondition& b) {
    return b.wanted && (b.up || panic) && !b.ejected;
  });
  std::vector<BackendRow::State> states;
  for (const BackendCondition& backend : backends) {
    if (!backend.up && !panic)
      states.push_back(BackendRow::State::kDown);
    else if (!backend.wanted || (backend.ejected && any_left))
      states.push_back(BackendRow::State::kDraining);
    else
      states.push_back(BackendRow::State::kServing);
  }
  return states;
}

}  // namespace unpin
