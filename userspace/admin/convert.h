// SPDX-License-Identifier: Apache-2.0
// Messages to model values and back. What comes in is checked for syntax; an error names the field.
// Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/unpin/v1/admin.pb.h"
#include "userspace/agent/operations.h"

namespace unpin {

// Both clocks read at one instant, so that the times of one response agree with each other.
struct ClockPair {
  TimePoint monotonic;
  WallTime wall;
};
ClockPair ReadClocks();

struct BackendRef {
  std::string service;
  Endpoint endpoint;
};

// Each fails with InvalidArgument, "field: what is wrong with it".
absl::StatusOr<ServiceSpec> ServiceFrom(const v1::AddServiceRequest& request);
absl::StatusOr<std::string> ServiceNameFrom(const v1::RemoveServiceRequest& request);
absl::StatusOr<BackendRef> BackendFrom(const v1::AddBackendRequest& request);
absl::StatusOr<BackendRef> BackendFrom(const v1::SetBackendRequest& request);
absl::StatusOr<BackendRef> BackendFrom(const v1::RemoveBackendRequest& request);
absl::StatusOr<BackendRef> BackendFrom(const v1::DrainBackendRequest& request);
absl::StatusOr<BackendRef> BackendFrom(const v1::UndrainBackendRequest& request);
absl::StatusOr<uint32_t> WeightFrom(const v1::AddBackendRequest& request);  // unset: 100
absl::StatusOr<uint32_t> WeightFrom(const v1::SetBackendRequest& request);
absl::StatusOr<Duration> WindowFrom(const v1::DrainBackendRequest& request);  // unset: 1 s
absl::StatusOr<ConnectionFilter> FilterFrom(const v1::ListConnectionsRequest& request);
absl::StatusOr<MoveOrder> MoveOrderFrom(const v1::MoveConnectionRequest& request);
absl::StatusOr<RebalanceOrder> RebalanceOrderFrom(const v1::RebalanceRequest& request);
absl::StatusOr<Duration> WaitFrom(const v1::MoveConnectionRequest& request);  // unset: 0

v1::AgentStatus ToProto(const StatusView& view, const ClockPair& now);
v1::Service ToProto(const ServiceView& view);
v1::Backend ToProto(const BackendView& view, const ClockPair& now);
v1::Connection ToProto(const ConnectionView& view, const ClockPair& now);
v1::Move ToProto(const MoveView& view, const ClockPair& now);
v1::Event ToProto(const Event& event, const ClockPair& now);
v1::RebalanceResponse ToProto(const RebalanceView& view);
v1::Counters ToProto(const CountersView& view);

}  // namespace unpin
