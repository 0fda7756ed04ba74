// SPDX-License-Identifier: Apache-2.0
// A backend's health from its probes: so many on end decide. Pure.
#pragma once

#include <cstdint>

#include "userspace/model/health.h"

namespace unpin {

class HealthState {
 public:
  // Until a probe has said otherwise a backend counts as up: an agent that starts must not take all of them out.
  HealthState() = default;
  // One that is added while others serve waits for its first good probe.
  static HealthState Awaited() { return HealthState(Health::kAwaited); }

  Health health() const { return health_; }

  // `rise` good or `fall` bad probes on end are believed, a decisive one at once. An awaited backend rises by a single good
  // one and cannot fall. True if the state has changed.
  bool OnProbe(const ProbeResult& probe, uint32_t rise, uint32_t fall) {
    if (probe.found == health_) {
      run_ = 0;
      return false;
    }
    if (probe.ok() != run_is_good_) run_ = 0;
    run_is_good_ = probe.ok();
    ++run_;
    if (health_ == Health::kAwaited) return probe.ok() && Become(probe.found);
    if (!probe.decisive && run_ < (probe.ok() ? rise : fall)) return false;
    return Become(probe.found);
  }

 private:
  explicit HealthState(Health health) : health_(health) {}

  bool Become(Health health) {
    health_ = health;
    run_ = 0;
    return true;
  }

  Health health_ = Health::kUp;
  uint32_t run_ = 0;  // probes on end, all good or all bad, that disagree with the state
  bool run_is_good_ = false;
};

}  // namespace unpin
