// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/balance.h"

#include <algorithm>

namespace unpin {
namespace {

constexpr double kEpsilon = 1e-9;  // sums differ in the last digits by their order

}  // namespace

Balance::Balance(std::span<const PlanBackend> backends, std::span<const PlanConnection> connections)
    : backends_(backends),
      loads_(backends.size()),
      shares_(backends.size()),
      largest_(backends.size()),
      holds_(backends.size()) {
  for (uint32_t i = 0; i < connections.size(); ++i) {
    const PlanConnection& c = connections[i];
    loads_[c.backend] += c.load;
    if (c.load > largest_[c.backend].load) largest_[c.backend] = {.connection = i, .load = c.load};
  }
  FindElephants();
}

double Balance::Max() const {
  double max = 0;
  for (uint32_t i = 0; i < loads_.size(); ++i) max = std::max(max, RatioOf(i));
  return max;
}

void Balance::Move(double load, uint32_t from, uint32_t to) {
  loads_[from] = std::max(0.0, loads_[from] - load);
  loads_[to] += load;
}

void Balance::Part(uint32_t connection, double load, uint32_t from, uint32_t to) {
  Move(load, from, to);
  if (load > largest_[to].load) largest_[to] = {.connection = connection, .load = load};
  FindElephants();
}

// One elephant that is found makes the other shares smaller, which may make more of them: until none is new.
void Balance::FindElephants() {
  elephants_.clear();
  holds_.assign(backends_.size(), false);
  while (true) {
    const double widest = Share();
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < backends_.size(); ++i) {
      if (holds_[i] || largest_[i].load < 0) continue;
      if (next == UINT32_MAX || largest_[i].load > largest_[next].load) next = i;
    }
    if (next == UINT32_MAX || largest_[next].load <= widest * (1 + kEpsilon)) break;
    elephants_.push_back(largest_[next].connection);
    holds_[next] = true;
  }
  std::ranges::sort(elephants_);
}

// Sets the shares; returns the largest of those without an elephant.
double Balance::Share() {
  double rest = 0, weights = 0, widest = 0;
  for (uint32_t i = 0; i < backends_.size(); ++i) {
    rest += loads_[i] - (holds_[i] ? largest_[i].load : 0);
    weights += holds_[i] ? 0 : backends_[i].weight;
  }
  for (uint32_t i = 0; i < backends_.size(); ++i) {
    shares_[i] = holds_[i] ? largest_[i].load : std::max(0.0, rest) * backends_[i].weight / weights;
    if (!holds_[i]) widest = std::max(widest, shares_[i]);
  }
  return widest;
}

}  // namespace unpin
