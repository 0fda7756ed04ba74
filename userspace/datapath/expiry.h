// SPDX-License-Identifier: Apache-2.0
// Which flows have been quiet for too long. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/datapath/flow_key.h"
#include "userspace/model/service.h"

namespace unpin {

// A flow as a walk over the table saw it: whether it has changed since can be told.
struct FlowMark {
  unpin_flow_key key = {};
  unpin_flow_key reverse = {};
  uint64_t created_ns = 0;
  uint64_t last_seen_ns = 0;
  uint8_t flags = 0;
  uint8_t direction = UNPIN_C2S;
};

FlowMark MarkOf(const unpin_flow_key& key, const unpin_flow& flow);

// One connection's flows (c2s first), or a flow that has lost its other direction.
using ExpiredFlows = std::vector<FlowMark>;

// Both directions of a connection expire together, by the newest packet of either and by how far it
// has closed.
std::vector<ExpiredFlows> FindExpired(const std::vector<FlowMark>& marks, TimePoint now,
                                      const ExpirySettings& settings);

}  // namespace unpin
