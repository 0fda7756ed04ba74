// SPDX-License-Identifier: Apache-2.0
#include "userspace/rebalance/move_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace unpin {
namespace {

constexpr Duration kSlowestResend = std::chrono::seconds(1);
// A bulk sender's client reports a hole with every segment that arrives: one answer to all those of a round trip.
constexpr Duration kHoleAnswerGap = std::chrono::milliseconds(5);

std::string Seconds(Duration duration) {
  return absl::StrFormat("%gs", std::chrono::duration<double>(duration).count());
}

}  // namespace

absl::StatusOr<MoveId> MoveBook::Start(const Order& order, TimePoint now) {
  if (IsMoving(order.connection)) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", order.connection.client.ToString(), " is already in move ",
                     latest_.at(order.connection)));
  }
  Entry& entry = Insert(order, now);
  output_.changed.push_back(entry.move);
  Act(MoveAction::Kind::kAddPin, entry);
  return entry.move.id;
}

void MoveBook::Adopt(const ConnectionKey& connection, ServiceId service, BackendId from,
                     TimePoint now) {
  if (IsMoving(connection)) return;
  Commit(Insert({.connection = connection, .service = service, .from = from}, now), now);
}

MoveBook::Entry& MoveBook::Insert(const Order& order, TimePoint now) {
  const MoveId id = next_id_++;
  if (next_id_ == 0) next_id_ = 1;
  Entry& entry = entries_[id];
  entry.move.id = id;
  entry.move.connection = order.connection;
  entry.move.service = order.service;
  entry.move.from = order.from;
  entry.move.to = order.to;
  entry.move.reason = order.reason;
  entry.move.planned = now;
  entry.pin_expires = now + settings_.reconnect_timeout;
  latest_[order.connection] = id;
  ++incoming_[order.to];
  return entry;
}

void MoveBook::OnPinned(MoveId id, const absl::Status& status, TimePoint) {
  Entry* entry = Unended(id);
  // Later pins replace one that another connection of the client took: the move goes on without.
  if (entry == nullptr || entry->stage != Stage::kPinning) return;
  if (!status.ok()) {
    entry->move.detail = std::string(status.message());
    // A draining backend gets no new connections anyway: there a pin only tells where, and matches the reconnect.
    const bool needed = entry->move.reason != MoveReason::kDrain && entry->move.reason != MoveReason::kSlow;
    if (needed || !absl::IsResourceExhausted(status)) return End(*entry, MoveState::kRefused);
  }
  entry->stage = Stage::kArming;
  Act(MoveAction::Kind::kArm, *entry);
}

void MoveBook::OnArmed(MoveId id, const absl::StatusOr<Splicer::Armed>& armed, TimePoint now) {
  Entry* entry = Unended(id);
  if (entry == nullptr || (entry->stage != Stage::kArming && entry->stage != Stage::kArmed)) return;
  if (!armed.ok()) {
    return GiveUp(*entry, MoveState::kRefused, std::string(armed.status().message()));
  }
  if (armed->refusal != Refusal::kNone) return Refused(*entry, armed->refusal, now);
  if (armed->committed) return Commit(*entry, now);
  if (entry->stage == Stage::kArming) SetDue(*entry, now + settings_.trim_after);
  entry->stage = Stage::kArmed;
}

void MoveBook::Refused(Entry& entry, Refusal refusal, TimePoint now) {
  if (refusal == Refusal::kAlreadyMoved && entry.stage == Stage::kArmed) return Commit(entry, now);
  if (refusal == Refusal::kBehind) {  // recovery takes milliseconds: try again
    entry.trimming = false;
    return SetDue(entry, now + settings_.resend_interval);
  }
  GiveUp(entry, MoveState::kRefused,
         refusal == Refusal::kNotFound ? "connection closed" : std::string(ToString(refusal)));
}

void MoveBook::OnDisarmed(MoveId id, const absl::Status& status, TimePoint now) {
  Entry* entry = Unended(id);
  if (entry == nullptr || entry->stage != Stage::kDisarming) return;
  if (absl::IsFailedPrecondition(status)) return Commit(*entry, now);
  if (absl::IsNotFound(status)) return Closed(*entry);
  GiveUp(*entry, MoveState::kExpired,
         absl::StrCat("no frame boundary within ", Seconds(settings_.arm_timeout)));
}

void MoveBook::OnEmitted(MoveId id, const absl::Status& status, TimePoint now) {
  Entry* entry = Unended(id);
  if (entry == nullptr || entry->stage != Stage::kSending) return;
  if (status.ok()) {
    ++entry->move.goaways_sent;
  } else if (absl::IsNotFound(status)) {
    Closed(*entry);
  } else if (absl::IsFailedPrecondition(status)) {
    Acknowledge(*entry, now);  // the event that said so was lost
  } else {
    entry->move.detail = std::string(status.message());  // resends go on
  }
}

void MoveBook::OnEvent(const FlowEvent& event, TimePoint now) {
  if (event.type == FlowEvent::Type::kOpened) return Opened(event);
  if (event.type == FlowEvent::Type::kNoNeighbor) return;
  const Entry* latest = LatestOf(event.key);
  if (latest == nullptr || latest->stage == Stage::kReconnecting) {
    // A hole may be reported late, by an ACK that was overtaken; a commit never is.
    const bool orphan = event.type == FlowEvent::Type::kCommitted ||
                        (event.type == FlowEvent::Type::kHole && latest == nullptr);
    if (orphan) Adopt(event.key, event.service, event.backend, now);
    return;
  }
  Entry& entry = entries_.at(latest->move.id);
  const bool committed =
      event.type == FlowEvent::Type::kCommitted || event.type == FlowEvent::Type::kHole;
  if (committed && entry.stage != Stage::kSending) return Commit(entry, now);
  if (event.type == FlowEvent::Type::kHole) Hole(entry, now);
  if (event.type == FlowEvent::Type::kAcknowledged) Acknowledge(entry, event.time);
  if (event.type != FlowEvent::Type::kClosed) return;
  // It may be the server alone that has gone, and the client still waits for 17 bytes: sending them tells.
  if (entry.stage == Stage::kSending) return Hole(entry, now);
  Closed(entry);
}

void MoveBook::Commit(Entry& entry, TimePoint now) {
  entry.stage = Stage::kSending;
  entry.resend = settings_.resend_interval;
  entry.move.sent = now;
  SetState(entry, MoveState::kSent);
  Emit(entry, now);
}

void MoveBook::Emit(Entry& entry, TimePoint now) {
  entry.last_emitted = now;
  Act(MoveAction::Kind::kEmit, entry);
  SetDue(entry, now + entry.resend);
}

void MoveBook::Hole(Entry& entry, TimePoint now) {
  const TimePoint earliest = entry.last_emitted + kHoleAnswerGap;
  if (now >= earliest) return Emit(entry, now);
  SetDue(entry, std::min(*entry.due, earliest));
}

void MoveBook::Acknowledge(Entry& entry, TimePoint time) {
  entry.move.acknowledged = time;
  if (!entry.move.sent) entry.move.sent = time;  // the event of the commit was lost
  if (entry.move.reconnected) return End(entry, MoveState::kReconnected);
  SetState(entry, MoveState::kAcknowledged);
  AwaitReconnect(entry);
}

void MoveBook::Opened(const FlowEvent& event) {
  if (event.move == 0) return;
  Entry* entry = Unended(event.move);
  if (entry == nullptr) entry = AdoptedAwaiting(event);
  if (entry == nullptr) return;
  if (entry->stage < Stage::kSending) {
    // Another connection of this client took the pin: the one to be moved still needs one.
    return Act(MoveAction::Kind::kAddPin, *entry);
  }
  entry->move.reconnected = event.time;
  entry->move.new_client = event.key.client;
  if (entry->move.to == 0) {
    if (--incoming_[0] == 0) incoming_.erase(0);
    ++incoming_[event.backend];
    entry->move.to = event.backend;
  }
  // Unacknowledged bytes are resent in any case: streams of the old connection may still be running.
  if (entry->stage == Stage::kReconnecting) End(*entry, MoveState::kReconnected);
}

void MoveBook::Closed(Entry& entry) {
  if (entry.stage < Stage::kSending) {
    return GiveUp(entry, MoveState::kRefused, "connection closed");
  }
  if (entry.move.reconnected) return End(entry, MoveState::kReconnected);
  entry.move.detail = "connection closed before the GOAWAY was acknowledged";
  AwaitReconnect(entry);
}

void MoveBook::AwaitReconnect(Entry& entry) {
  entry.stage = Stage::kReconnecting;
  SetDue(entry, entry.pin_expires);
}

void MoveBook::OnDue(TimePoint now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    Entry& entry = entries_.at(due_.begin()->second);
    SetDue(entry, std::nullopt);
    Due(entry, now);
  }
}

void MoveBook::Due(Entry& entry, TimePoint now) {
  if (entry.stage < Stage::kSending) return DueBeforeCommit(entry, now);
  if (entry.stage == Stage::kReconnecting) {
    if (entry.move.detail.empty()) {
      entry.move.detail =
          absl::StrCat("no new connection within ", Seconds(settings_.reconnect_timeout));
    }
    return GiveUp(entry, MoveState::kExpired, entry.move.detail);
  }
  if (now >= *entry.move.sent + settings_.ack_timeout) {
    if (entry.move.reconnected) return End(entry, MoveState::kReconnected);
    return GiveUp(entry, MoveState::kExpired,
                  absl::StrCat("GOAWAY not acknowledged within ", Seconds(settings_.ack_timeout)));
  }
  entry.resend = std::min(entry.resend * 2, std::max(kSlowestResend, settings_.resend_interval));
  Emit(entry, now);
}

void MoveBook::DueBeforeCommit(Entry& entry, TimePoint now) {
  const TimePoint deadline = entry.move.planned + settings_.arm_timeout;
  if (now >= deadline) {
    if (entry.stage == Stage::kArming) {
      return GiveUp(entry, MoveState::kExpired, std::string(ToString(Refusal::kBehind)));
    }
    entry.stage = Stage::kDisarming;
    return Act(MoveAction::Kind::kDisarm, entry);
  }
  if (entry.stage == Stage::kArming) return Act(MoveAction::Kind::kArm, entry);
  if (!entry.trimming) {
    entry.trimming = true;
    Act(MoveAction::Kind::kArmWithTrim, entry);
  }
  SetDue(entry, deadline);
}

std::optional<TimePoint> MoveBook::NextDue() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void MoveBook::GiveUp(Entry& entry, MoveState state, std::string detail) {
  entry.move.detail = std::move(detail);
  Act(MoveAction::Kind::kRemovePin, entry);
  End(entry, state);
}

void MoveBook::End(Entry& entry, MoveState state) {
  entry.stage = Stage::kEnded;
  SetDue(entry, std::nullopt);
  if (const auto it = latest_.find(entry.move.connection);
      it != latest_.end() && it->second == entry.move.id) {
    latest_.erase(it);
  }
  if (const auto it = incoming_.find(entry.move.to); --it->second == 0) incoming_.erase(it);
  SetState(entry, state);
  ended_.push_back(entry.move.id);
  if (ended_.size() > kEndedKept) {
    entries_.erase(ended_.front());
    ended_.pop_front();
  }
}

void MoveBook::Act(MoveAction::Kind kind, const Entry& entry) {
  output_.actions.push_back({.kind = kind,
                             .move = entry.move.id,
                             .connection = entry.move.connection,
                             .service = entry.move.service,
                             .to = entry.move.to,
                             .pin_expires = entry.pin_expires});
}

void MoveBook::SetState(Entry& entry, MoveState state) {
  entry.move.state = state;
  output_.changed.push_back(entry.move);
}

void MoveBook::SetDue(Entry& entry, std::optional<TimePoint> due) {
  if (entry.due) due_.erase({*entry.due, entry.move.id});
  entry.due = due;
  if (due) due_.insert({*due, entry.move.id});
}

MoveBook::Entry* MoveBook::Unended(MoveId id) {
  const auto it = entries_.find(id);
  return it == entries_.end() || it->second.stage == Stage::kEnded ? nullptr : &it->second;
}

const MoveBook::Entry* MoveBook::LatestOf(const ConnectionKey& connection) const {
  const auto it = latest_.find(connection);
  return it == latest_.end() ? nullptr : &entries_.at(it->second);
}

bool MoveBook::IsMoving(const ConnectionKey& connection) const {
  const Entry* latest = LatestOf(connection);
  return latest != nullptr && latest->stage <= Stage::kSending;
}

// An adopted move does not know the id that its pin carries.
MoveBook::Entry* MoveBook::AdoptedAwaiting(const FlowEvent& opened) {
  if (!incoming_.contains(0)) return nullptr;
  for (auto& [id, entry] : entries_) {
    if (entry.stage != Stage::kEnded && entry.move.to == 0 &&
        entry.move.service == opened.service &&
        entry.move.connection.client.address == opened.key.client.address) {
      return &entry;
    }
  }
  return nullptr;
}

const Move* MoveBook::Find(MoveId id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second.move;
}

uint32_t MoveBook::Incoming(BackendId backend) const {
  const auto it = incoming_.find(backend);
  return it == incoming_.end() ? 0 : it->second;
}

std::vector<const Move*> MoveBook::Unended() const {
  std::vector<const Move*> moves;
  for (const auto& [connection, id] : latest_) moves.push_back(&entries_.at(id).move);
  std::ranges::sort(moves, {}, [](const Move* move) { return move->id; });
  return moves;
}

std::vector<Move> MoveBook::Newest(std::optional<ServiceId> service, size_t limit) const {
  std::vector<Move> moves;
  for (auto it = entries_.rbegin(); it != entries_.rend() && moves.size() < limit; ++it) {
    const Move& move = it->second.move;
    if (!service || *service == move.service) moves.push_back(move);
  }
  return moves;
}

}  // namespace unpin
