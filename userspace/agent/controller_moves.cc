// SPDX-License-Identifier: Apache-2.0
// Moves: an operator's, a drain's, and those an earlier agent left.
#include <string>

#include "absl/strings/str_cat.h"
#include "userspace/agent/controller.h"
#include "userspace/base/status.h"
#include "userspace/policy/pick_target.h"

namespace unpin {
namespace {

// An out-of-sync connection recovers within milliseconds: its move waits for that.
bool CanBeMoved(Refusal refusal) {
  return refusal == Refusal::kNone || refusal == Refusal::kBehind;
}

std::string Sentence(const MoveView& view) {
  const Move& move = view.move;
  std::string text = absl::StrCat("move ", move.id, " of ", move.connection.client.ToString(),
                                  " from ", view.from.ToString());
  if (move.to != 0) absl::StrAppend(&text, " to ", view.to.ToString());
  absl::StrAppend(&text, ": ", ToString(move.state));
  if (!move.detail.empty()) absl::StrAppend(&text, ", ", move.detail);
  return text;
}

}  // namespace

absl::Status Controller::ResumeMoves(TimePoint now) {
  const auto unacknowledged = splicer_.Unacknowledged();
  if (!unacknowledged.ok()) return Annotate(unacknowledged.status(), "find moves to resume");
  for (const ConnectionKey& key : *unacknowledged) {
    const auto connection = flows_.Find(key, now, settings_.moves.min_age);
    if (!connection.ok()) continue;  // gone meanwhile
    mover_.Adopt(key, connection->service, connection->backend, now);
  }
  TellMoves();
  return absl::OkStatus();
}

absl::StatusOr<MoveView> Controller::MoveConnection(const MoveOrder& order) {
  absl::MutexLock lock(&mutex_);
  const TimePoint now = surroundings_.clock();
  const absl::StatusOr<Connection> connection = FindConnection(order, now);
  if (!connection.ok()) return connection.status();
  if (!CanBeMoved(connection->refusal)) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", order.client.ToString(),
                     " cannot be moved: ", ToString(connection->refusal)));
  }
  const absl::StatusOr<BackendId> target = FindTarget(order, *connection, now);
  if (!target.ok()) return target.status();

  const absl::StatusOr<MoveId> id = mover_.Start({.connection = connection->key,
                                                  .service = connection->service,
                                                  .from = connection->backend,
                                                  .to = *target,
                                                  .reason = MoveReason::kOperator},
                                                 now);
  TellMoves();
  surroundings_.wake();
  if (!id.ok()) return id.status();
  const Move& move = *mover_.book().Find(*id);
  if (move.state == MoveState::kRefused) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", order.client.ToString(), " cannot be moved: ", move.detail));
  }
  return ViewOf(move);
}

absl::StatusOr<Connection> Controller::FindConnection(const MoveOrder& order, TimePoint now) {
  if (order.service && !desired_.contains(*order.service)) {
    return absl::NotFoundError(absl::StrCat("service: there is no service ", *order.service));
  }
  std::vector<Connection> found;
  for (const auto& [name, service] : desired_) {
    if (order.service && name != *order.service) continue;
    const auto connection = flows_.Find({.client = order.client, .vip = service.spec.vip}, now,
                                        settings_.moves.min_age);
    if (connection.ok() && !connection->closed) {
      found.push_back(*connection);
    } else if (!connection.ok() && !absl::IsNotFound(connection.status())) {
      return connection.status();
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("client: there is no connection from ", order.client.ToString(),
                     order.service ? absl::StrCat(" to service ", *order.service) : ""));
  }
  return absl::InvalidArgumentError(absl::StrCat("service: ", order.client.ToString(),
                                                 " has connections to ", found.size(),
                                                 " services; say which"));
}

absl::StatusOr<BackendId> Controller::FindTarget(const MoveOrder& order,
                                                 const Connection& connection, TimePoint now) {
  if (!order.target) {
    const auto connections = Scan(now);
    if (!connections.ok()) return connections.status();
    if (const auto picked = PickTargetFor(connection, LoadsOf(*connections))) return *picked;
    return absl::FailedPreconditionError(absl::StrCat("service ", ServiceName(connection.service),
                                                      " has no other backend that is serving"));
  }
  const std::string target = order.target->ToString();
  const ServiceWithBackends* service = FindDesired(connection.service);
  const auto spec = service->backends.find(*order.target);
  if (spec == service->backends.end()) {
    return absl::NotFoundError(
        absl::StrCat("target: service ", service->spec.name, " has no backend ", target));
  }
  const BackendId id = *ids_.IdOf(service->spec.vip, *order.target);
  if (id == connection.backend) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: the connection is on ", target, " already"));
  }
  if (spec->second.draining) {
    return absl::FailedPreconditionError(absl::StrCat("target: ", target, " is draining"));
  }
  return id;
}

std::optional<BackendId> Controller::PickTargetFor(const Connection& connection,
                                                   const Loads& loads) {
  const ServiceWithBackends* service = FindDesired(connection.service);
  if (service == nullptr) return std::nullopt;
  std::vector<TargetCandidate> candidates;
  for (const auto& [endpoint, backend] : service->backends) {
    const BackendId id = *ids_.IdOf(service->spec.vip, endpoint);
    const auto load = loads.find(id);
    const Load carried = load == loads.end() ? Load{} : load->second;
    candidates.push_back({.id = id,
                          .weight = backend.weight,
                          .serving = !backend.draining,
                          .connections = carried.connections + mover_.book().Incoming(id),
                          .open_streams = carried.open_streams});
  }
  return PickTarget(candidates, connection.backend);
}

bool Controller::HasTarget(BackendId from) {
  Connection any;
  any.backend = from;
  any.service = ids_.FindBackend(from)->service;
  return PickTargetFor(any, {}).has_value();
}

absl::Status Controller::TickDrains(TimePoint now) {
  const auto next = drainer_.NextDue();
  if (!next || *next > now) return absl::OkStatus();
  if (drainer_.WantsScan(now)) {
    const auto connections = Scan(now);
    if (!connections.ok()) return connections.status();
    const auto is_moving = [this](const ConnectionKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return mover_.book().IsMoving(key);
    };
    drain_loads_ = LoadsOf(*connections);
    for (const BackendId backend : drainer_.Observe(*connections, is_moving, now)) {
      Tell("backend-drained", ids_.FindBackend(backend)->service_name,
           absl::StrCat("backend ", BackendName(backend), " has no open connections"));
    }
  }
  const auto held = [this](BackendId backend)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !HasTarget(backend); };
  for (const Drainer::Due& due : drainer_.TakeDue(now, held)) StartDrainMoves(due, now);
  return absl::OkStatus();
}

void Controller::StartDrainMoves(const Drainer::Due& due, TimePoint now) {
  for (const Connection& connection : due.connections) {
    const std::optional<BackendId> target = PickTargetFor(connection, drain_loads_);
    if (!target) return;
    // What became of it is the move's own story; a connection that stays is tried again.
    mover_
        .Start({.connection = connection.key,
                .service = connection.service,
                .from = connection.backend,
                .to = *target,
                .reason = MoveReason::kDrain},
               now)
        .status()
        .IgnoreError();
  }
}

void Controller::TellMoves() {
  for (const Move& move : mover_.TakeChanged()) {
    ++moves_by_state_[move.state];
    const MoveView view = ViewOf(move);
    Tell(absl::StrCat("move-", ToString(move.state)), view.service, Sentence(view), view);
  }
}

absl::StatusOr<MoveView> Controller::FindMove(MoveId id) {
  absl::MutexLock lock(&mutex_);
  const Move* move = mover_.book().Find(id);
  if (move == nullptr) return absl::NotFoundError(absl::StrCat("there is no move ", id));
  return ViewOf(*move);
}

absl::StatusOr<std::vector<MoveView>> Controller::ListMoves(
    const std::optional<std::string>& service, size_t limit) {
  absl::MutexLock lock(&mutex_);
  std::optional<ServiceId> id;
  if (service) {
    const auto found = desired_.find(*service);
    if (found == desired_.end()) {
      return absl::NotFoundError(absl::StrCat("service: there is no service ", *service));
    }
    id = ids_.IdOf(found->second.spec.vip);
  }
  std::vector<MoveView> views;
  for (const Move& move : mover_.book().Newest(id, limit)) views.push_back(ViewOf(move));
  return views;
}

}  // namespace unpin
