// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/fewest_moves.h"

#include <algorithm>
#include <utility>

namespace unpin {
namespace {

constexpr double kEpsilon = 1e-9;
constexpr double kFull = 1e9;  // load where none belongs

}  // namespace

FewestMoves::FewestMoves(std::span<const PlanConnection> connections, std::vector<double> loads,
                         std::vector<double> shares, std::span<const uint32_t> stay)
    : connections_(connections),
      loads_(std::move(loads)),
      shares_(std::move(shares)),
      movable_(loads_.size()),
      next_(loads_.size()),
      kept_(loads_) {
  for (uint32_t i = 0; i < connections.size(); ++i) {
    const PlanConnection& c = connections[i];
    const bool stays = std::ranges::find(stay, i) != stay.end();
    if (!c.movable || c.load <= 0 || stays) continue;
    movable_[c.backend].push_back(i);
    kept_[c.backend] -= c.load;
  }
  for (std::vector<uint32_t>& of_backend : movable_) {
    std::ranges::stable_sort(of_backend, std::greater(),
                             [&](uint32_t i) { return connections_[i].load; });
  }
}

double FewestMoves::RatioOf(uint32_t backend) const {
  if (shares_[backend] > 0) return loads_[backend] / shares_[backend];
  return loads_[backend] > kEpsilon ? kFull : 0;
}

std::optional<std::vector<Relocation>> FewestMoves::Find(double limit, uint32_t most) {
  steps_left_ = kSteps;
  for (uint32_t depth = 0; depth <= most && steps_left_ > 0; ++depth) {
    path_.clear();
    std::ranges::fill(next_, 0);
    if (Descend(limit, depth)) return path_;
  }
  return std::nullopt;
}

// On success the path is kept; loads and marks are as before in any case.
bool FewestMoves::Descend(double limit, uint32_t left) {
  if (steps_left_ == 0) return false;
  --steps_left_;
  uint32_t worst = 0, over = 0;
  for (uint32_t i = 0; i < loads_.size(); ++i) {
    over += RatioOf(i) > limit + kEpsilon;
    if (RatioOf(i) > RatioOf(worst)) worst = i;
  }
  if (over == 0) return true;
  if (over > left) return false;  // each needs a move of its own
  return TryAll(worst, limit, left);
}

bool FewestMoves::TryAll(uint32_t from, double limit, uint32_t left) {
  const uint32_t first = next_[from];
  double tried = -1;
  for (uint32_t i = first; i < movable_[from].size(); ++i) {
    const uint32_t connection = movable_[from][i];
    const double load = connections_[connection].load;
    if (load == tried) continue;
    tried = load;
    next_[from] = i + 1;
    for (uint32_t to = 0; to < loads_.size(); ++to) {
      if (to == from || kept_[to] + load > limit * shares_[to] + kEpsilon) continue;
      if (MoveAndDescend({.connection = connection, .to = to}, from, limit, left)) return true;
    }
  }
  next_[from] = first;
  return false;
}

bool FewestMoves::MoveAndDescend(const Relocation& move, uint32_t from, double limit,
                                 uint32_t left) {
  const double load = connections_[move.connection].load;
  const double from_before = loads_[from], to_before = loads_[move.to],
               kept_before = kept_[move.to];
  loads_[from] -= load;
  loads_[move.to] += load;
  kept_[move.to] += load;
  path_.push_back(move);
  const bool found = Descend(limit, left - 1);
  loads_[from] = from_before;
  loads_[move.to] = to_before;
  kept_[move.to] = kept_before;
  if (!found) path_.pop_back();
  return found;
}

}  // namespace unpin
