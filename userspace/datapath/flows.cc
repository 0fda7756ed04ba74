// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/flows.h"

#include <utility>

#include "userspace/datapath/abi_convert.h"
#include "userspace/datapath/expiry.h"
#include "userspace/datapath/flow_key.h"
#include "userspace/datapath/verdict_names.h"

namespace unpin {
namespace {

using FlowIndex = absl::flat_hash_map<unpin_flow_key, unpin_flow, FlowKeyHash, FlowKeyEqual>;

absl::StatusOr<FlowIndex> ReadAll(const FlowMap& flows) {
  FlowIndex index;
  const absl::Status status = flows.ForEach([&](const unpin_flow_key& key, const unpin_flow& flow) {
    index.insert_or_assign(key, flow);
  });
  if (!status.ok()) return status;
  return index;
}

// The other direction, if the two name each other.
const unpin_flow* ReverseOf(const FlowIndex& index, const unpin_flow_key& key,
                            const unpin_flow& flow) {
  const auto found = index.find(flow.reverse);
  if (found == index.end() || !FlowKeyEqual()(found->second.reverse, key)) return nullptr;
  return &found->second;
}

// A packet may have come, or a new connection taken the key, since the walk passed by.
absl::StatusOr<bool> IsUnchanged(const FlowMap& flows, const FlowMark& mark) {
  const absl::StatusOr<unpin_flow> flow = flows.Get(mark.key);
  if (absl::IsNotFound(flow.status())) return false;
  if (!flow.ok()) return flow.status();
  return flow->created_ns == mark.created_ns && flow->last_seen_ns == mark.last_seen_ns;
}

// How many flows were deleted: all, or none if one of them lives.
absl::StatusOr<uint64_t> Delete(const FlowMap& flows, const ExpiredFlows& expired) {
  for (const FlowMark& mark : expired) {
    const absl::StatusOr<bool> unchanged = IsUnchanged(flows, mark);
    if (!unchanged.ok()) return unchanged.status();
    if (!*unchanged) return 0;
  }
  for (const FlowMark& mark : expired) {
    absl::Status status = flows.Erase(mark.key);
    if (!status.ok()) return status;
  }
  return expired.size();
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
  std::vector<FlowMark> marks;
  const absl::Status status =
      flows_.ForEach([&](const unpin_flow_key& key, const unpin_flow& flow) {
        marks.push_back(MarkOf(key, flow));
      });
  if (!status.ok()) return status;
  Occupancy occupancy = {.flows = marks.size(), .capacity = flows_.max_entries(), .expired = 0};
  for (const ExpiredFlows& expired : FindExpired(marks, now, settings)) {
    const absl::StatusOr<uint64_t> deleted = Delete(flows_, expired);
    if (!deleted.ok()) return deleted.status();
    occupancy.expired += *deleted;
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
