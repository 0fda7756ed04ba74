// SPDX-License-Identifier: Apache-2.0
#include "userspace/model/move.h"

namespace unpin {

absl::string_view ToString(MoveState state) {
  switch (state) {
    case MoveState::kPlanned:
      return "planned";
    case MoveState::kSent:
      return "sent";
    case MoveState::kAcknowledged:
      return "acknowledged";
    case MoveState::kReconnected:
      return "reconnected";
    case MoveState::kExpired:
      return "expired";
    case MoveState::kRefused:
      return "refused";
  }
  return "invalid";
}

absl::string_view ToString(MoveReason reason) {
  switch (reason) {
    case MoveReason::kOperator:
      return "operator";
    case MoveReason::kDrain:
      return "drain";
    case MoveReason::kRebalance:
      return "rebalance";
    case MoveReason::kSlow:
      return "slow backend";
    case MoveReason::kAge:
      return "age";
  }
  return "invalid";
}

}  // namespace unpin
