// SPDX-License-Identifier: Apache-2.0
// Whether a service may be rebalanced now: not on noise, not on a passing moment, not faster than its budget. Pure: time is
// an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "userspace/base/clock.h"

namespace unpin {

class RebalanceGate {
 public:
  // `noise`: the standard error of the imbalance; twice that much is not looked at. True once it has been imbalanced for
  // `ticks` observations on end. After a change of the backends (Hurry) the first is enough.
  bool Observe(double imbalance, double limit, double noise, uint32_t ticks) {
    if (imbalance <= limit + 2 * noise) {
      imbalanced_ = 0;
      hurried_ = false;
      return false;
    }
    ++imbalanced_;
    return std::exchange(hurried_, false) || imbalanced_ >= ticks;
  }
  void Hurry() { hurried_ = true; }

  // Moves that may be started now, of `per_second`; unused ones are kept for a second.
  uint32_t Budget(uint32_t per_second, TimePoint now) {
    const double seconds =
        std::chrono::duration<double>(std::max(Duration::zero(), now - refilled_)).count();
    tokens_ = std::min<double>(per_second, tokens_ + seconds * per_second);
    refilled_ = now;
    return static_cast<uint32_t>(tokens_);
  }
  void Spend(uint32_t moves) { tokens_ = std::max(0.0, tokens_ - moves); }

 private:
  uint32_t imbalanced_ = 0;
  bool hurried_ = false;
  double tokens_ = 1e9;  // the first refill cuts it to one second's worth
  TimePoint refilled_;
};

}  // namespace unpin
