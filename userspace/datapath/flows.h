// SPDX-License-Identifier: Apache-2.0
// The kernel's flow table, read as connections, and its housekeeping.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/datapath/bpf_map.h"
#include "userspace/datapath/flow_view.h"
#include "userspace/datapath/program.h"
#include "userspace/model/ports.h"

namespace unpin {

using FlowMap = BpfMap<unpin_flow_key, unpin_flow>;

class KernelFlows final : public Flows {
 public:
  // `program` must outlive the flows.
  static absl::StatusOr<std::unique_ptr<KernelFlows>> Open(const Program& program);

  absl::StatusOr<std::vector<Connection>> List(TimePoint now, Duration min_age) override;
  absl::StatusOr<Connection> Find(const ConnectionKey& key, TimePoint now,
                                  Duration min_age) override;
  absl::StatusOr<Occupancy> Expire(TimePoint now, const ExpirySettings& settings) override;
  absl::StatusOr<std::map<std::string, uint64_t>> VerdictCounts() override;

 private:
  KernelFlows(FlowMap flows, BpfPerCpuArray<uint64_t> verdicts)
      : flows_(std::move(flows)), verdicts_(std::move(verdicts)) {}

  FlowMap flows_;
  BpfPerCpuArray<uint64_t> verdicts_;
};

// Both directions of a connection by its c2s key; NotFound if either is missing.
absl::StatusOr<FlowPair> ReadFlowPair(const FlowMap& flows, const unpin_flow_key& c2s);

}  // namespace unpin
