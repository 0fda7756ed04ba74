// SPDX-License-Identifier: Apache-2.0
// Where a connection goes when nobody named a target. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include "userspace/model/service.h"

namespace unpin {

struct TargetCandidate {
  BackendId id = 0;
  uint32_t weight = 0;
  bool serving = false;
  uint64_t connections = 0;  // those under way to it included
  uint64_t open_streams = 0;
};

// The serving backend that would carry the fewest connections for its weight, with one more; open
// streams for their weight break a tie. Never `from`, never one of weight 0; nothing if none is left.
inline std::optional<BackendId> PickTarget(std::span<const TargetCandidate> candidates,
                                           BackendId from) {
  const auto cost = [](const TargetCandidate& c) {
    return std::tuple((static_cast<double>(c.connections) + 1) / c.weight,
                      static_cast<double>(c.open_streams) / c.weight, c.id);
  };
  const TargetCandidate* best = nullptr;
  for (const TargetCandidate& candidate : candidates) {
    if (!candidate.serving || candidate.weight == 0 || candidate.id == from) continue;
    if (best == nullptr || cost(candidate) < cost(*best)) best = &candidate;
  }
  if (best == nullptr) return std::nullopt;
  return best->id;
}

}  // namespace unpin
