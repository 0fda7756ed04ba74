// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/expiry.h"

#include <algorithm>
#include <utility>

#include "userspace/datapath/abi_convert.h"

namespace unpin {
namespace {

Duration QuietTimeOf(uint8_t flags, uint8_t reverse_flags, const ExpirySettings& settings) {
  const uint8_t either = flags | reverse_flags;
  if ((either & UNPIN_FLOW_RST) || (flags & reverse_flags & UNPIN_FLOW_FIN)) return settings.closed;
  return either & UNPIN_FLOW_FIN ? settings.closing : settings.established;
}

bool HasExpired(const ExpiredFlows& flows, TimePoint now, const ExpirySettings& settings) {
  // Without its other direction it forwards nothing: as closed as by a reset.
  const uint8_t reverse_flags = flows.size() > 1 ? flows[1].flags : uint8_t{UNPIN_FLOW_RST};
  uint64_t newest = 0;
  for (const FlowMark& mark : flows) newest = std::max(newest, mark.last_seen_ns);
  return now - TimePointOf(newest) >= QuietTimeOf(flows[0].flags, reverse_flags, settings);
}

}  // namespace

FlowMark MarkOf(const unpin_flow_key& key, const unpin_flow& flow) {
  return {.key = key,
          .reverse = flow.reverse,
          .created_ns = flow.created_ns,
          .last_seen_ns = flow.last_seen_ns,
          .flags = flow.flags,
          .direction = flow.direction};
}

std::vector<ExpiredFlows> FindExpired(const std::vector<FlowMark>& marks, TimePoint now,
                                      const ExpirySettings& settings) {
  absl::flat_hash_map<unpin_flow_key, const FlowMark*, FlowKeyHash, FlowKeyEqual> by_key;
  by_key.reserve(marks.size());
  for (const FlowMark& mark : marks) by_key.emplace(mark.key, &mark);

  std::vector<ExpiredFlows> expired;
  for (const FlowMark& mark : marks) {
    ExpiredFlows flows = {mark};
    const auto other = by_key.find(mark.reverse);
    // An orphan's reverse key may by now belong to a new connection of the same client port.
    if (other != by_key.end() && FlowKeyEqual()(other->second->reverse, mark.key)) {
      if (mark.direction == UNPIN_S2C) continue;  // met from its c2s flow
      flows.push_back(*other->second);
    }
    if (HasExpired(flows, now, settings)) expired.push_back(std::move(flows));
  }
  return expired;
}

}  // namespace unpin
