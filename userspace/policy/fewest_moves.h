// SPDX-License-Identifier: Apache-2.0
// A complete search for the fewest moves, for small cases. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "userspace/policy/plan_moves.h"
#include "userspace/policy/shedding.h"

namespace unpin {

// While a backend is over the limit, one of its connections must leave it: so each step tries all of the most loaded
// backend's, everywhere, to a depth that grows until a way is found. Connections of equal load count once.
class FewestMoves {
 public:
  static constexpr size_t kConnections = 64;
  static constexpr size_t kBackends = 16;
  static constexpr uint32_t kSteps = 200'000;  // of one Find: some milliseconds

  static bool IsSmall(size_t backends, size_t connections) {
    return backends <= kBackends && connections <= kConnections;
  }

  FewestMoves(std::span<const PlanConnection> connections, std::vector<double> loads,
              std::vector<double> shares, std::span<const uint32_t> stay);

  // Nothing if `most` moves are not enough for every backend to be at or under limit * share, or the bound was met.
  std::optional<std::vector<Relocation>> Find(double limit, uint32_t most);

 private:
  bool Descend(double limit, uint32_t left);
  bool TryAll(uint32_t from, double limit, uint32_t left);
  bool MoveAndDescend(const Relocation& move, uint32_t from, double limit, uint32_t left);
  double RatioOf(uint32_t backend) const;

  std::span<const PlanConnection> connections_;
  std::vector<double> loads_;
  std::vector<double> shares_;
  std::vector<std::vector<uint32_t>> movable_;  // of each backend, heaviest first
  std::vector<uint32_t>
      next_;  // of each backend's movable ones, the first that may still leave: the order of leaving is no choice
  std::vector<double>
      kept_;  // what never leaves a backend again: what cannot, and what has just come
  std::vector<Relocation> path_;
  uint32_t steps_left_ = 0;
};

}  // namespace unpin
