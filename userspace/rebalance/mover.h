// SPDX-License-Identifier: Apache-2.0
// Carries out what the move book decides, over the splicer. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "userspace/model/ports.h"
#include "userspace/rebalance/move_book.h"

namespace unpin {

class Mover {
 public:
  Mover(Splicer& splicer, const MoveSettings& settings, MoveId first)
      : splicer_(splicer), book_(settings, first), min_age_(settings.min_age) {}

  void SetSettings(const MoveSettings& settings);

  // Each of these also carries out what follows at once: an idle connection's GOAWAY is on the wire
  // when Start returns.
  absl::StatusOr<MoveId> Start(const MoveBook::Order& order, TimePoint now);
  // Resumes what an earlier agent committed and the client has not acknowledged.
  void Adopt(const ConnectionKey& connection, ServiceId service, BackendId from, TimePoint now);
  void OnEvent(const FlowEvent& event, TimePoint now);
  void OnDue(TimePoint now);

  // Moves that entered another state since the last call, in order.
  std::vector<Move> TakeChanged() { return std::exchange(changed_, {}); }

  const MoveBook& book() const { return book_; }
  uint64_t goaways_sent() const { return goaways_sent_; }
  uint64_t goaways_failed() const { return goaways_failed_; }

 private:
  void CarryOut(TimePoint now);
  void CarryOut(const MoveAction& action, TimePoint now);

  Splicer& splicer_;
  MoveBook book_;
  Duration min_age_;
  std::vector<Move> changed_;
  uint64_t goaways_sent_ = 0;
  uint64_t goaways_failed_ = 0;
};

}  // namespace unpin
