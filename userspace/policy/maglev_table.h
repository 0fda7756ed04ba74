// SPDX-License-Identifier: Apache-2.0
// The table that steers new connections: slot (hash of the client) -> backend, after the Maglev paper
// (Eisenbud et al., NSDI 2016, section 3.4), with weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "userspace/base/ip_address.h"
#include "userspace/model/service.h"

namespace unpin {

struct WeightedBackend {
  BackendId id = 0;
  uint64_t identity = 0;  // of its endpoint: equal on every gateway, unlike the id
  uint32_t weight = 0;
  friend bool operator==(const WeightedBackend&, const WeightedBackend&) = default;
};

// Unequal for unequal endpoints; equal on every gateway, in every build, for ever: tables of two
// releases must agree.
uint64_t BackendIdentity(const Endpoint& endpoint);

// Fills `slots` slots with backend ids, each backend's share following its weight to within two slots.
// Equal backends, in any order, give an equal table on every machine.
//
// `slots` must be prime; identities must differ; a backend of weight 0 gets no slot; no backends, no table.
std::vector<BackendId> BuildMaglevTable(std::span<const WeightedBackend> backends, uint32_t slots);

}  // namespace unpin
