// SPDX-License-Identifier: Apache-2.0
// The controller's doing: moves on order, drains, and what happens by itself as time passes.
#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "userspace/agent/controller.h"
#include "userspace/policy/pick_target.h"

namespace unpin {
namespace {

constexpr Duration kHousekeeping = std::chrono::seconds(1);
// Rates are kept fresh for so long after the last look.
constexpr Duration kInterest = std::chrono::seconds(10);

// A refusal that time may lift.
bool MayBecomeMovable(Refusal refusal) {
  return refusal == Refusal::kUndecided || refusal == Refusal::kTooYoung ||
         refusal == Refusal::kNoResponse || refusal == Refusal::kBehind;
}

}  // namespace

absl::StatusOr<Connection> Controller::FindConnection(const MoveOrder& order, TimePoint now) {
  std::vector<Connection> found;
  for (const auto& [name, service] : desired_) {
    if (order.service && *order.service != name) continue;
    const ConnectionKey key = {.client = order.client, .vip = service.spec.vip};
    absl::StatusOr<Connection> connection = ports_.flows.Find(key, now, settings_.moves.min_age);
    if (connection.ok() && !connection->closed)
      found.push_back(*std::move(connection));
    else if (!connection.ok() && !absl::IsNotFound(connection.status()))
      return connection.status();
  }
  if (order.service && !desired_.contains(*order.service)) {
    return absl::NotFoundError(
        absl::StrCat("service: there is no service \"", *order.service, "\""));
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("client: no open connection from ", order.client.ToString()));
  }
  if (found.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat("client: ", order.client.ToString(),
                                                      " has connections to ", found.size(),
                                                      " services: name one"));
  }
  return found.front();
}

std::optional<BackendId> Controller::PickTargetFor(const Connection& connection) {
  const auto service = desired_.find(NameOf(connection.service));
  if (service == desired_.end()) return std::nullopt;
  std::vector<TargetCandidate> candidates;
  for (const auto& [endpoint, backend] : service->second.backends) {
    const BackendId id = *ids_.IdOf(service->second.spec.vip, endpoint);
    const LoadTracker::BackendLoad load = loads_.LoadOf(id);
    candidates.push_back(
        {.id = id,
         .weight = backend.weight,
         .serving = sync_.installed().backends.at(id).state == BackendRow::State::kServing,
         .connections = load.connections + mover_.book().Incoming(id),
         .open_streams = load.open_streams});
  }
  return PickTarget(candidates, connection.backend);
}

absl::StatusOr<BackendId> Controller::ChooseTarget(const Connection& connection,
                                                   const MoveOrder& order) {
  const std::string name = NameOf(connection.service);
  if (!order.target) {
    const std::optional<BackendId> picked = PickTargetFor(connection);
    if (picked) return *picked;
    return absl::FailedPreconditionError(
        absl::StrCat("service ", name, " has no other serving backend to move to"));
  }
  const ServiceWithBackends& service = desired_.at(name);
  const auto backend = service.backends.find(*order.target);
  if (backend == service.backends.end()) {
    return absl::NotFoundError(
        absl::StrCat("target: service ", name, " has no backend ", order.target->ToString()));
  }
  const BackendId id = *ids_.IdOf(service.spec.vip, *order.target);
  if (backend->second.draining) {
    return absl::FailedPreconditionError(
        absl::StrCat("target: backend ", order.target->ToString(), " is draining"));
  }
  if (sync_.installed().backends.at(id).state != BackendRow::State::kServing) {
    return absl::FailedPreconditionError(
        absl::StrCat("target: backend ", order.target->ToString(), " is not serving now"));
  }
  if (id == connection.backend) {
    return absl::FailedPreconditionError(
        absl::StrCat("target: the connection is on ", order.target->ToString(), " already"));
  }
  return id;
}

absl::StatusOr<MoveId> Controller::StartMove(const Connection& connection, BackendId to,
                                             MoveReason reason, TimePoint now) {
  const absl::StatusOr<MoveId> id = mover_.Start({.connection = connection.key,
                                                  .service = connection.service,
                                                  .from = connection.backend,
                                                  .to = to,
                                                  .reason = reason},
                                                 now);
  PublishMoves(now);
  if (hooks_.wake) hooks_.wake();
  return id;
}

absl::StatusOr<MoveView> Controller::MoveConnection(const MoveOrder& order) {
  absl::MutexLock lock(&mutex_);
  const TimePoint now = Now();
  const absl::StatusOr<Connection> connection = FindConnection(order, now);
  if (!connection.ok()) return connection.status();
  // One that is out of sync is recovered within milliseconds: the move waits for that.
  if (connection->refusal != Refusal::kNone && connection->refusal != Refusal::kBehind) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", order.client.ToString(),
                     " cannot be moved: ", ToString(connection->refusal)));
  }
  if (absl::Status status = Scan(now); !status.ok()) return status;
  const absl::StatusOr<BackendId> to = ChooseTarget(*connection, order);
  if (!to.ok()) return to.status();
  const absl::StatusOr<MoveId> id = StartMove(*connection, *to, MoveReason::kOperator, now);
  if (!id.ok()) return id.status();
  const Move& move = *mover_.book().Find(*id);
  if (move.state == MoveState::kRefused) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", order.client.ToString(), " cannot be moved: ", move.detail));
  }
  return ViewOf(move);
}

absl::Status Controller::StepDrains(TimePoint now) {
  const std::vector<BackendId> due = drains_.Due(now);
  if (due.empty()) return absl::OkStatus();
  scanned_ = TimePoint();  // a drain decides on what is, not on what was
  if (absl::Status status = Scan(now); !status.ok()) return status;
  for (const BackendId backend : due) {
    std::vector<const Connection*> movable;
    size_t later = 0;
    for (const Connection& connection : connections_) {
      if (connection.backend != backend || connection.closed) continue;
      if (mover_.book().IsMoving(connection.key))
        ++later;
      else if (connection.refusal == Refusal::kNone)
        movable.push_back(&connection);
      else
        later += MayBecomeMovable(connection.refusal);
    }
    size_t count = drains_.Step(backend, movable.size(), later, now);
    for (const Connection* connection : movable | std::views::take(count)) {
      const std::optional<BackendId> to = PickTargetFor(*connection);
      if (!to) {
        Publish("drain-stuck", NameOf(connection->service),
                absl::StrCat("backend ", EndpointOf(backend).ToString(), " keeps ", movable.size(),
                             " connections: no other backend is serving"),
                now);
        break;
      }
      // Refused for now (too many moves of one client at once): the next step tries again.
      const bool ejected = IsEjected(NameOf(connection->service), backend, now);
      (void)StartMove(*connection, *to, ejected ? MoveReason::kSlow : MoveReason::kDrain, now);
    }
  }
  return absl::OkStatus();
}

// What a drain could not move by its deadline: long streams, connections that cannot be spliced.
absl::Status Controller::EnforceDrainDeadlines(TimePoint now) {
  std::vector<BackendId> over;
  for (const auto& [name, service] : desired_) {
    const Duration deadline = service.spec.policy.drain_deadline;
    if (deadline <= Duration::zero()) continue;
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
      const std::optional<TimePoint> since = backend.draining ? drains_.Since(id) : std::nullopt;
      if (since && now - *since >= deadline) over.push_back(id);
    }
  }
  return over.empty() ? absl::OkStatus() : AbandonConnectionsOf(over, now);
}

void Controller::Publish(std::string type, const std::string& service, std::string message,
                         TimePoint now) {
  broadcast_.Push({.time = now,
                   .type = std::move(type),
                   .service = service,
                   .message = std::move(message),
                   .move = std::nullopt},
                  false);
}

void Controller::PublishMoves(TimePoint now) {
  for (const Move& move : mover_.TakeChanged()) {
    if (move.ended()) {
      ++moves_by_end_[std::string(ToString(move.state))];
      const auto service = desired_.find(NameOf(move.service));
      const Duration rest = service == desired_.end()
                                ? Duration::zero()
                                : service->second.spec.policy.rebalance.cool_down;
      cool_downs_.OnEnded(move, rest, now);
      if (move.new_client)
        loads_.Succeed(move.connection, {*move.new_client, move.connection.vip}, now);
    }
    const MoveView view = ViewOf(move);
    std::string message =
        absl::StrCat("move ", move.id, " ", move.connection.client.ToString(), " ",
                     view.from.ToString(), " -> ", view.to.ToString(), ": ", ToString(move.state));
    if (!move.detail.empty()) absl::StrAppend(&message, " (", move.detail, ")");
    broadcast_.Push({.time = now,
                     .type = absl::StrCat("move-", ToString(move.state)),
                     .service = view.service,
                     .message = std::move(message),
                     .move = view},
                    false);
  }
}

void Controller::PublishConnection(const FlowEvent& event) {
  const bool opened = event.type == FlowEvent::Type::kOpened;
  broadcast_.Push(
      {.time = event.time,
       .type = opened ? "connection-opened" : "connection-closed",
       .service = NameOf(event.service),
       .message = absl::StrCat(event.key.client.ToString(), opened ? " opened on " : " closed on ",
                               EndpointOf(event.backend).ToString()),
       .move = std::nullopt},
      true);
}

void Controller::OnEvent(const FlowEvent& event, TimePoint now) {
  absl::MutexLock lock(&mutex_);
  if (event.type == FlowEvent::Type::kNoNeighbor) return;
  if (event.type == FlowEvent::Type::kSuspect) {
    Publish("backend-suspect", NameOf(event.service),
            absl::StrCat("backend ", EndpointOf(event.backend).ToString(),
                         " broke off or refused a connection"),
            now);
    if (hooks_.probe) hooks_.probe(event.backend);
    return;
  }
  mover_.OnEvent(event, now);
  PublishMoves(now);
  if (event.type == FlowEvent::Type::kOpened || event.type == FlowEvent::Type::kClosed) {
    PublishConnection(event);
  }
}

absl::Status Controller::Tick(TimePoint now) {
  absl::MutexLock lock(&mutex_);
  mover_.OnDue(now);
  absl::Status status = StepRebalance(now);
  status.Update(StepDrains(now));
  PublishMoves(now);
  if (now < housekeeping_due_) return status;
  housekeeping_due_ = now + kHousekeeping;
  const absl::StatusOr<Flows::Occupancy> occupancy = ports_.flows.Expire(now, settings_.expiry);
  status.Update(occupancy.status());
  if (occupancy.ok()) {
    occupancy_ = *occupancy;
    expired_ += occupancy->expired;
  }
  status.Update(EnforceDrainDeadlines(now));
  if (now - looked_at_ < kInterest) status.Update(Scan(now));
  ForgetRetired(now);
  return status;
}

TimePoint Controller::NextDue(TimePoint now) {
  absl::MutexLock lock(&mutex_);
  TimePoint next = std::max(now, housekeeping_due_);
  if (const auto due = mover_.book().NextDue()) next = std::min(next, *due);
  if (const auto due = drains_.NextDue()) next = std::min(next, *due);
  if (WantsRebalancing()) next = std::min(next, rebalance_due_);
  return next;
}

}  // namespace unpin
