// SPDX-License-Identifier: Apache-2.0
// The life of moves as a state machine: no I/O, no clock. What happened goes in, what to do is taken out.
//
//   Start -> pin -> arm -> (commit) -> GOAWAY, resent until acknowledged -> the reconnect that took the pin
//
// The pin stands before the connection is armed: a client that reconnects at once must meet it. A connection that
// has committed is never left alone, whoever asked for it: without its GOAWAY the client would wait for 17 bytes
// for ever.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/model/connection.h"
#include "userspace/model/move.h"
#include "userspace/model/ports.h"
#include "userspace/model/service.h"

namespace unpin {

struct MoveAction {
  enum class Kind { kAddPin, kArm, kArmWithTrim, kEmit, kRemovePin, kDisarm };
  Kind kind = Kind::kAddPin;
  MoveId move = 0;
  ConnectionKey connection;
  ServiceId service = 0;
  BackendId to = 0;
  TimePoint pin_expires;
};

struct MoveOutput {
  std::vector<MoveAction>
      actions;                // to be carried out in this order; each result is told to the book
  std::vector<Move> changed;  // moves that entered another state, as they were then
};

class MoveBook {
 public:
  static constexpr size_t kEndedKept = 10000;

  struct Order {
    ConnectionKey connection;
    ServiceId service = 0;
    BackendId from = 0;
    BackendId to = 0;  // 0: not known (adopted)
    MoveReason reason = MoveReason::kOperator;
  };

  // Ids count up from `first`, which is not 0; pins of an earlier agent may still carry the ids it used.
  MoveBook(const MoveSettings& settings, MoveId first) : settings_(settings), next_id_(first) {}

  void SetSettings(const MoveSettings& settings) { settings_ = settings; }

  // The move's id; FailedPrecondition while the connection is in a move that is not yet acknowledged.
  absl::StatusOr<MoveId> Start(const Order& order, TimePoint now);
  // Takes on a connection that committed under an earlier agent, or after its move was given up.
  void Adopt(const ConnectionKey& connection, ServiceId service, BackendId from, TimePoint now);

  // What came of the actions.
  void OnPinned(MoveId id, const absl::Status& status, TimePoint now);
  void OnArmed(MoveId id, const absl::StatusOr<Splicer::Armed>& armed, TimePoint now);
  void OnDisarmed(MoveId id, const absl::Status& status, TimePoint now);
  void OnEmitted(MoveId id, const absl::Status& status, TimePoint now);

  void OnEvent(const FlowEvent& event, TimePoint now);
  void OnDue(TimePoint now);
  std::optional<TimePoint> NextDue() const;

  // What there is to do and to tell since the last call.
  MoveOutput Take() { return std::exchange(output_, {}); }

  const Move* Find(MoveId id) const;
  // True until the GOAWAY is acknowledged or the move has ended.
  bool IsMoving(const ConnectionKey& connection) const;
  // Moves on their way to `backend`.
  uint32_t Incoming(BackendId backend) const;
  // Those that have not ended, by their id.
  std::vector<const Move*> Unended() const;
  // Newest first; `service` unset: of every service.
  std::vector<Move> Newest(std::optional<ServiceId> service, size_t limit) const;

 private:
  enum class Stage { kPinning, kArming, kArmed, kDisarming, kSending, kReconnecting, kEnded };
  struct Entry {
    Move move;
    Stage stage = Stage::kPinning;
    std::optional<TimePoint> due;
    TimePoint pin_expires;
    TimePoint last_emitted;
    Duration resend{};
    bool trimming = false;
  };

  Entry& Insert(const Order& order, TimePoint now);
  Entry* Unended(MoveId id);
  const Entry* LatestOf(const ConnectionKey& connection) const;
  Entry* AdoptedAwaiting(const FlowEvent& opened);
  void Act(MoveAction::Kind kind, const Entry& entry);
  void SetState(Entry& entry, MoveState state);
  void SetDue(Entry& entry, std::optional<TimePoint> due);

  void Refused(Entry& entry, Refusal refusal, TimePoint now);
  void Commit(Entry& entry, TimePoint now);
  void Emit(Entry& entry, TimePoint now);
  void Acknowledge(Entry& entry, TimePoint time);
  void Opened(const FlowEvent& event);
  void Closed(Entry& entry);
  void Hole(Entry& entry, TimePoint now);
  void AwaitReconnect(Entry& entry);
  // Ends a move that will not reach its target, and takes its pin back.
  void GiveUp(Entry& entry, MoveState state, std::string detail);
  void End(Entry& entry, MoveState state);
  void Due(Entry& entry, TimePoint now);
  void DueBeforeCommit(Entry& entry, TimePoint now);

  MoveSettings settings_;
  MoveId next_id_;
  std::map<MoveId, Entry> entries_;
  std::deque<MoveId> ended_;                           // oldest first
  absl::flat_hash_map<ConnectionKey, MoveId> latest_;  // of the moves that have not ended
  absl::flat_hash_map<BackendId, uint32_t> incoming_;
  std::set<std::pair<TimePoint, MoveId>> due_;
  MoveOutput output_;
};

}  // namespace unpin
