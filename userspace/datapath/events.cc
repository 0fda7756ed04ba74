// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/events.h"

#include <optional>
#include <utility>

#include "userspace/datapath/abi_convert.h"

namespace unpin {
namespace {

std::optional<FlowEvent::Type> TypeOf(__u32 type) {
  switch (type) {
    case UNPIN_EVENT_OPENED: return FlowEvent::Type::kOpened;
    case UNPIN_EVENT_CLOSED: return FlowEvent::Type::kClosed;
    case UNPIN_EVENT_COMMITTED: return FlowEvent::Type::kCommitted;
    case UNPIN_EVENT_ACKNOWLEDGED: return FlowEvent::Type::kAcknowledged;
    case UNPIN_EVENT_HOLE: return FlowEvent::Type::kHole;
    case UNPIN_EVENT_NO_NEIGHBOR: return FlowEvent::Type::kNoNeighbor;
    case UNPIN_EVENT_SUSPECT: return FlowEvent::Type::kSuspect;
    default: return std::nullopt;  // of a newer data plane
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventRing>> OpenEvents(
    const Program& program, std::function<void(const FlowEvent&)> on_event) {
  return EventRing::Open(
      program.data_plane().maps.events, [on_event = std::move(on_event)](const unpin_event& event) {
        const std::optional<FlowEvent::Type> type = TypeOf(event.type);
        if (!type.has_value()) return;
        on_event({.type = *type,
                  .time = TimePointOf(event.time_ns),
                  .key = ConnectionKeyOf(event.c2s),
                  .service = event.service,
                  .backend = event.backend,
                  .move = event.move,
                  .boundary = event.sequence});
      });
}

}  // namespace unpin
