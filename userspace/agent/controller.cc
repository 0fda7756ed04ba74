// SPDX-License-Identifier: Apache-2.0
// Start, reload, and the turns of the loop.
#include "userspace/agent/controller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr Duration kHousekeeping = std::chrono::seconds(1);
// Rates are kept fresh for so long after somebody looked: a dashboard or a watching CLI looks again.
constexpr Duration kStaysInterested = std::chrono::seconds(30);

}  // namespace

Controller::Controller(const Ports& ports, const Settings& settings, Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      flows_(ports.flows),
      splicer_(ports.splicer),
      store_(ports.store),
      tables_(ports.tables),
      settings_(settings),
      sync_(ports.tables, surroundings_.slots),
      mover_(ports.splicer, settings.moves, surroundings_.first_move) {}

absl::Status Controller::Start(const Desired& file) {
  absl::MutexLock lock(&mutex_);
  const TimePoint now = surroundings_.clock();
  const auto services = tables_.ReadServices();
  if (!services.ok()) return Annotate(services.status(), "read the services in the data plane");
  const auto backends = tables_.ReadBackends();
  if (!backends.ok()) return Annotate(backends.status(), "read the backends in the data plane");
  ids_ = IdRegistry::Adopted(*services, *backends, now);
  sync_.Adopt(*services, *backends);

  if (absl::Status status = Install(store_.Merge(file), settings_.limits, /*save=*/false);
      !status.ok()) {
    return status;
  }
  store_.Rebase(file);
  return ResumeMoves(now);
}

absl::Status Controller::Reload(const Desired& file, const Settings& settings) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = Install(store_.Merge(file), settings.limits, /*save=*/false);
      !status.ok()) {
    return status;
  }
  store_.Rebase(file);
  settings_ = settings;
  mover_.SetSettings(settings.moves);
  Tell("config-reloaded", "", absl::StrCat(desired_.size(), " services"));
  surroundings_.wake();
  return absl::OkStatus();
}

absl::Status Controller::Tick() {
  absl::MutexLock lock(&mutex_);
  const TimePoint now = surroundings_.clock();
  mover_.OnDue(now);
  absl::Status status = TickDrains(now);
  if (now >= next_housekeeping_) status.Update(Housekeeping(now));
  TellMoves();
  return status;
}

TimePoint Controller::NextTick() {
  absl::MutexLock lock(&mutex_);
  TimePoint next = next_housekeeping_;
  if (const auto due = mover_.book().NextDue(); due) next = std::min(next, *due);
  if (const auto due = drainer_.NextDue(); due) next = std::min(next, *due);
  return next;
}

absl::Status Controller::Housekeeping(TimePoint now) {
  next_housekeeping_ = now + kHousekeeping;
  absl::Status status;
  const absl::StatusOr<Flows::Occupancy> occupancy = flows_.Expire(now, settings_.expiry);
  if (occupancy.ok()) {
    occupancy_ = *occupancy;
    expired_flows_ += occupancy->expired;
  }
  status.Update(Annotate(occupancy.status(), "expire connections"));
  if (last_looked_ && now - *last_looked_ < kStaysInterested && now - last_scan_ >= kHousekeeping) {
    status.Update(Scan(now).status());
  }
  if (ids_.HasRetired()) status.Update(FreeRetired(now));
  return status;
}

absl::Status Controller::FreeRetired(TimePoint now) {
  const auto connections = Scan(now);
  if (!connections.ok()) return connections.status();
  IdRegistry::InUse in_use;
  for (const Connection& connection : *connections) {  // closed ones too: their packets still come
    in_use.backends.insert(connection.backend);
    in_use.services.insert(connection.service);
  }
  const IdRegistry next = ids_.Without(in_use, now);
  if (next.backends().size() == ids_.backends().size()) {
    ids_ = next;
    return absl::OkStatus();
  }
  if (absl::Status status = sync_.Sync(ImageOf(desired_, next)); !status.ok()) {
    return Annotate(status, "forget removed backends");
  }
  for (const auto& [id, backend] : ids_.backends()) {
    if (next.FindBackend(id) != nullptr) continue;
    Tell("backend-forgotten", backend.service_name,
         absl::StrCat("backend ", backend.endpoint.ToString(), " has no connections left"));
  }
  ids_ = next;
  return absl::OkStatus();
}

void Controller::OnEvent(const FlowEvent& event) {
  absl::MutexLock lock(&mutex_);
  mover_.OnEvent(event, surroundings_.clock());
  TellMoves();
  const bool opened = event.type == FlowEvent::Type::kOpened;
  if (!opened && event.type != FlowEvent::Type::kClosed) return;
  Push({.time = event.time,
        .type = opened ? "connection-opened" : "connection-closed",
        .service = ServiceName(event.service),
        .message =
            absl::StrCat("connection ", event.key.client.ToString(),
                         opened ? " opened to " : " closed, was on ", BackendName(event.backend)),
        .move = std::nullopt},
       /*of_connection=*/true);
}

void Controller::Tell(std::string type, std::string service, std::string message,
                      std::optional<MoveView> move) {
  Push({.time = surroundings_.clock(),
        .type = std::move(type),
        .service = std::move(service),
        .message = std::move(message),
        .move = std::move(move)},
       /*of_connection=*/false);
}

void Controller::Push(const Event& event, bool of_connection) {
  std::erase_if(watchers_, [](const std::weak_ptr<EventQueue>& queue) { return queue.expired(); });
  for (const std::weak_ptr<EventQueue>& watcher : watchers_) {
    const std::shared_ptr<EventQueue> queue = watcher.lock();
    if (queue && (!of_connection || queue->wants_connections())) queue->Push(event);
  }
}

std::shared_ptr<EventQueue> Controller::Watch(bool connections) {
  absl::MutexLock lock(&mutex_);
  auto queue = std::make_shared<EventQueue>(connections);
  watchers_.push_back(queue);
  return queue;
}

}  // namespace unpin
