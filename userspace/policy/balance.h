// SPDX-License-Identifier: Apache-2.0
// How the load of a service stands, and what each of its backends should carry. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "userspace/policy/plan_moves.h"

namespace unpin {

// A backend that holds an elephant, a connection that is more than a whole share, has that elephant as its share; the
// others divide the rest by weight.
class Balance {
 public:
  Balance(std::span<const PlanBackend> backends, std::span<const PlanConnection> connections);

  double RatioOf(uint32_t backend) const {
    return shares_[backend] > 0  ? loads_[backend] / shares_[backend]
           : loads_[backend] > 0 ? kFull
                                 : 0;
  }
  double Max() const;
  const std::vector<double>& shares() const { return shares_; }
  const std::vector<double>& loads() const { return loads_; }
  // Sorted.
  const std::vector<uint32_t>& elephants() const { return elephants_; }
  bool HoldsElephant(uint32_t backend) const { return holds_[backend]; }

  // The shares stay as they are.
  void Move(double load, uint32_t from, uint32_t to);
  // An elephant that is not its backend's largest goes to one that holds none: the shares are made anew.
  void Part(uint32_t connection, double load, uint32_t from, uint32_t to);

 private:
  static constexpr double kFull = 1e9;  // load where none belongs

  struct Largest {
    uint32_t connection = UINT32_MAX;
    double load = -1;
  };

  void FindElephants();
  double Share();

  std::span<const PlanBackend> backends_;
  std::vector<double> loads_;
  std::vector<double> shares_;
  std::vector<Largest> largest_;  // of each backend
  std::vector<bool> holds_;
  std::vector<uint32_t> elephants_;
};

}  // namespace unpin
