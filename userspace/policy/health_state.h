// SPDX-License-Identifier: Apache-2.0
// A backend's health from its probes: so many on end decide. Pure.
#pragma once

#include <cstdint>

namespace unpin {

class HealthState {
 public:
  // Until a probe has said otherwise a backend counts as up: an agent that starts must not take all of them out.
  bool is_up() const { return is_up_; }

  // `decisive`: a refusal that needs no second opinion, such as a connection refused by a host that is there. True if the
  // state has changed.
  bool OnProbe(bool ok, bool decisive, uint32_t rise, uint32_t fall) {
    if (ok == is_up_) {
      run_ = 0;
      return false;
    }
    if (++run_ < (ok ? rise : fall) && !(decisive && !ok)) return false;
    is_up_ = ok;
    run_ = 0;
    return true;
  }

 private:
  bool is_up_ = true;
  uint32_t run_ = 0;  // probes on end that disagree with the state
};

}  // namespace unpin
