// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/flows.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "userspace/datapath/abi_convert.h"
#include "userspace/datapath/verdict_names.h"

namespace unpin {
namespace {

struct KeyHash {
  size_t operator()(const unpin_flow_key& key) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(&key), sizeof(key)});
  }
};
struct KeyEqual {
  bool operator()(const unpin_flow_key& a, const unpin_flow_key& b) const {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  }
};
using FlowIndex = absl::flat_hash_map<unpin_flow_key, unpin_flow, KeyHash, KeyEqual>;

absl::StatusOr<FlowIndex> ReadAll(const FlowMap& flows) {
  FlowIndex index;
  const absl::Status status = flows.ForEach(
      [&](const unpin_flow_key& key, const unpin_flow& flow) { index.insert_or_assign(key, flow); });
  if (!status.ok()) return status;
  return index;
}

// The other direction, if the two name each other.
const unpin_flow* ReverseOf(const FlowIndex& index, const unpin_flow_key& key,
                            const unpin_flow& flow) {
  const auto found = index.find(flow.reverse);
  if (found == index.end() || !KeyEqual()(found->second.reverse, key)) return nullptr;
  return &found->second;
}

// How long a flow may be quiet. A direction whose other one is gone counts as closed.
Duration AllowedQuiet(const unpin_flow& flow, const unpin_flow* reverse,
                      const ExpirySettings& settings) {
  if (reverse == nullptr || flow.flags & UNPIN_FLOW_ORPHAN) return settings.closed;
  const int either = flow.flags | reverse->flags, both = flow.flags & reverse->flags;
  if (either & UNPIN_FLOW_RST || both & UNPIN_FLOW_FIN) return settings.closed;
  return either & UNPIN_FLOW_FIN ? settings.closing : settings.established;
}

TimePoint LastSeen(const unpin_flow& flow, const unpin_flow* reverse) {
  return TimePointOf(reverse == nullptr ? flow.last_seen_ns
                                        : std::max(flow.last_seen_ns, reverse->last_seen_ns));
}

}  // namespace

absl::StatusOr<FlowPair> ReadFlowPair(const FlowMap& flows, const unpin_flow_key& c2s) {
  absl::StatusOr<unpin_flow> forward = flows.Get(c2s);
  if (!forward.ok()) return forward.status();
  if (forward->direction != UNPIN_C2S) return absl::NotFoundError("not a client's direction");
  absl::StatusOr<unpin_flow> back = flows.Get(forward->reverse);
  if (!back.ok()) return back.status();
  return FlowPair{.key = c2s, .c2s = *forward, .s2c = *back};
}

absl::StatusOr<std::unique_ptr<KernelFlows>> KernelFlows::Open(const Program& program) {
  const auto& maps = program.data_plane().maps;
  absl::StatusOr<FlowMap> flows = FlowMap::Open(maps.flows);
  if (!flows.ok()) return flows.status();
  auto verdicts = BpfPerCpuArray<uint64_t>::Open(maps.verdict_counts);
  if (!verdicts.ok()) return verdicts.status();
  return std::unique_ptr<KernelFlows>(new KernelFlows(*std::move(flows), *std::move(verdicts)));
}

absl::StatusOr<std::vector<Connection>> KernelFlows::List(TimePoint now, Duration min_age) {
  absl::StatusOr<FlowIndex> index = ReadAll(flows_);
  if (!index.ok()) return index.status();
  std::vector<Connection> connections;
  for (const auto& [key, flow] : *index) {
    if (flow.direction != UNPIN_C2S) continue;
    const unpin_flow* reverse = ReverseOf(*index, key, flow);
    if (reverse == nullptr) continue;  // being inserted or deleted just now
    connections.push_back(ConnectionOf({.key = key, .c2s = flow, .s2c = *reverse}, now, min_age));
  }
  return connections;
}

absl::StatusOr<Connection> KernelFlows::Find(const ConnectionKey& key, TimePoint now,
                                             Duration min_age) {
  absl::StatusOr<FlowPair> pair = ReadFlowPair(flows_, C2sKeyOf(key));
  if (absl::IsNotFound(pair.status())) {
    return absl::NotFoundError("connection " + ToString(key) + " is not in the flow table");
  }
  if (!pair.ok()) return pair.status();
  return ConnectionOf(*pair, now, min_age);
}

absl::StatusOr<Flows::Occupancy> KernelFlows::Expire(TimePoint now,
                                                     const ExpirySettings& settings) {
  absl::StatusOr<FlowIndex> index = ReadAll(flows_);
  if (!index.ok()) return index.status();
  Occupancy occupancy = {.flows = index->size(), .capacity = flows_.max_entries(), .expired = 0};
  for (const auto& [key, flow] : *index) {
    const unpin_flow* reverse = ReverseOf(*index, key, flow);
    if (now - LastSeen(flow, reverse) < AllowedQuiet(flow, reverse, settings)) continue;
    const absl::StatusOr<unpin_flow> again = flows_.Get(key);  // a packet may have come since the walk
    if (!again.ok() || again->last_seen_ns != flow.last_seen_ns) continue;
    absl::Status status = flows_.Erase(key);
    if (!status.ok()) return status;
    ++occupancy.expired;
  }
  occupancy.flows -= occupancy.expired;
  return occupancy;
}

absl::StatusOr<std::map<std::string, uint64_t>> KernelFlows::VerdictCounts() {
  std::map<std::string, uint64_t> counts;
  for (uint32_t verdict = UNPIN_CONTINUE + 1; verdict < UNPIN_VERDICT_COUNT; ++verdict) {
    absl::StatusOr<std::vector<uint64_t>> per_cpu = verdicts_.Get(verdict);
    if (!per_cpu.ok()) return per_cpu.status();
    uint64_t sum = 0;
    for (const uint64_t count : *per_cpu) sum += count;
    counts[std::string(VerdictName(static_cast<unpin_verdict>(verdict)))] = sum;
  }
  return counts;
}

}  // namespace unpin
