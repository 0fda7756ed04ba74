// SPDX-License-Identifier: Apache-2.0
// A move: (connection, from backend, to backend), with what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "userspace/model/connection.h"

namespace unpin {

enum class MoveState { kPlanned, kSent, kAcknowledged, kReconnected, kExpired, kRefused };
absl::string_view ToString(MoveState state);  // "planned", "sent", "acknowledged", ...

enum class MoveReason { kOperator, kDrain, kRebalance, kSlow, kAge };
absl::string_view ToString(MoveReason reason);  // "operator", "drain", "rebalance", "slow backend", "age"

struct Move {
  MoveId id = 0;
  ConnectionKey connection;
  ServiceId service = 0;
  BackendId from = 0;
  BackendId to = 0;
  MoveReason reason = MoveReason::kOperator;
  MoveState state = MoveState::kPlanned;
  std::string detail;  // of kExpired and kRefused
  TimePoint planned;
  std::optional<TimePoint> sent;          // the splice was committed, the first GOAWAY emitted
  std::optional<TimePoint> acknowledged;
  std::optional<TimePoint> reconnected;
  std::optional<Endpoint> new_client;     // the connection that took the pin
  uint32_t goaways_sent = 0;

  bool ended() const { return state >= MoveState::kReconnected; }
};

}  // namespace unpin
