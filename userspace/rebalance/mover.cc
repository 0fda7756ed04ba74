// SPDX-License-Identifier: Apache-2.0
#include "userspace/rebalance/mover.h"

#include <algorithm>
#include <iterator>

namespace unpin {

void Mover::SetSettings(const MoveSettings& settings) {
  min_age_ = settings.min_age;
  book_.SetSettings(settings);
}

absl::StatusOr<MoveId> Mover::Start(const MoveBook::Order& order, TimePoint now) {
  const absl::StatusOr<MoveId> id = book_.Start(order, now);
  CarryOut(now);
  return id;
}

void Mover::Adopt(const ConnectionKey& connection, ServiceId service, BackendId from,
                  TimePoint now) {
  book_.Adopt(connection, service, from, now);
  CarryOut(now);
}

void Mover::OnEvent(const FlowEvent& event, TimePoint now) {
  book_.OnEvent(event, now);
  CarryOut(now);
}

void Mover::OnDue(TimePoint now) {
  book_.OnDue(now);
  CarryOut(now);
}

// Results make further actions, until the book has none.
void Mover::CarryOut(TimePoint now) {
  for (;;) {
    MoveOutput output = book_.Take();
    std::ranges::move(output.changed, std::back_inserter(changed_));
    if (output.actions.empty()) return;
    for (const MoveAction& action : output.actions) CarryOut(action, now);
  }
}

void Mover::CarryOut(const MoveAction& action, TimePoint now) {
  switch (action.kind) {
    case MoveAction::Kind::kAddPin:
      return book_.OnPinned(action.move,
                            splicer_.AddPin(action.service, action.connection.client.address,
                                            action.to, action.move, action.pin_expires),
                            now);
    case MoveAction::Kind::kArm:
    case MoveAction::Kind::kArmWithTrim:
      return book_.OnArmed(
          action.move,
          splicer_.Arm(action.connection, action.kind == MoveAction::Kind::kArmWithTrim, min_age_),
          now);
    case MoveAction::Kind::kEmit: {
      const absl::Status status = splicer_.EmitGoaway(action.connection);
      ++(status.ok() ? goaways_sent_ : goaways_failed_);
      return book_.OnEmitted(action.move, status, now);
    }
    case MoveAction::Kind::kRemovePin:
      // A pin that stays does no more harm than to steer one connection, and it expires.
      splicer_.RemovePin(action.service, action.connection.client.address, action.move)
          .IgnoreError();
      return;
    case MoveAction::Kind::kDisarm:
      return book_.OnDisarmed(action.move, splicer_.Disarm(action.connection), now);
  }
}

}  // namespace unpin
