// SPDX-License-Identifier: Apache-2.0
// Which connections to move so that load follows capacity, in the fewest moves. Pure: no clock, no memory of earlier plans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "userspace/model/service.h"

namespace unpin {

// A backend that may carry load. Those that serve nobody (draining, down) are not part of a plan.
struct PlanBackend {
  BackendId id = 0;
  double weight = 0;  // capacity, > 0, in any unit: only shares count
};

// Load is a rate or a number, >= 0, in one unit for all connections of a plan.
struct PlanConnection {
  uint32_t backend =
      0;  // index into the backends; where it is, or where a move under way will bring it
  float load = 0;
  bool movable = false;
};

struct PlanSettings {
  double tolerance = 0.05;   // a backend may carry so much more than its share
  double worthwhile = 0.02;  // a plan that lowers the maximum by less is not made
  uint32_t max_moves = UINT32_MAX;
  // The standard error of a backend's load / share. A backend that is over the tolerance by no more than SignificantNoise of
  // it is left alone.
  double noise = 0;
};

struct PlannedMove {
  uint32_t connection = 0;       // index into the connections
  uint32_t from = 0, to = 0;     // indices into the backends
  double before = 0, after = 0;  // load of `from`, as a multiple of its share
};

struct Plan {
  std::vector<PlannedMove>
      moves;  // most urgent first; each lowers the load of the most loaded backend of its time
  std::vector<uint32_t>
      elephants;  // connections that are more than a whole share: each is left alone on its backend
  double imbalance = 0;  // now: the maximum of load / share over the backends
  double expected = 0;   // once all moves are done
};

// The fewest moves that bring every backend under (1 + tolerance) of its share, or, where whole connections do not allow
// that, close to the lowest maximum they allow. A backend that holds an elephant has that elephant as its share, and the
// others divide the rest. Small cases are searched completely, within a bound; large ones greedily, in O(n log n).
// Equal input gives an equal plan. Fewer than two backends: no moves.
Plan PlanMoves(std::span<const PlanBackend> backends, std::span<const PlanConnection> connections,
               const PlanSettings& settings);

// How far measured loads may be off by chance alone, if one standard error is `noise`, without it meaning anything: the most
// that is seen among so many backends, and one more.
double SignificantNoise(double noise, size_t backends);

// The maximum of load / share over the backends, elephants counted as in a plan. 0 without load.
double ImbalanceOf(std::span<const PlanBackend> backends,
                   std::span<const PlanConnection> connections);

}  // namespace unpin
