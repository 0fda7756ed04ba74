// SPDX-License-Identifier: Apache-2.0
// Flow keys as keys of hash tables.
#pragma once

#include <cstddef>
#include <tuple>

#include "absl/hash/hash.h"
#include "bpf/abi.h"

namespace unpin {

inline auto PartsOf(const unpin_flow_key& key) {
  return std::tuple(key.source, key.destination, key.source_port, key.destination_port);
}

struct FlowKeyHash {
  size_t operator()(const unpin_flow_key& key) const { return absl::HashOf(PartsOf(key)); }
};

struct FlowKeyEqual {
  bool operator()(const unpin_flow_key& a, const unpin_flow_key& b) const {
    return PartsOf(a) == PartsOf(b);
  }
};

}  // namespace unpin
