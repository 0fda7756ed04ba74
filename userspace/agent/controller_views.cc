// SPDX-License-Identifier: Apache-2.0
// The controller's answers to "what is": scans when somebody looks.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "userspace/agent/controller.h"

namespace unpin {
namespace {

// A look within this time of the last scan sees that scan.
constexpr Duration kScanFresh = std::chrono::milliseconds(100);

}  // namespace

absl::Status Controller::Scan(TimePoint now) {
  if (now - scanned_ < kScanFresh) return absl::OkStatus();
  absl::StatusOr<std::vector<Connection>> connections =
      ports_.flows.List(now, settings_.moves.min_age);
  if (!connections.ok()) return connections.status();
  connections_ = *std::move(connections);
  scanned_ = now;
  loads_.Update(connections_, now);
  return absl::OkStatus();
}

std::string Controller::NameOf(ServiceId id) const {
  const IdRegistry::Service* service = ids_.FindService(id);
  return service == nullptr ? "" : service->name;
}

Endpoint Controller::EndpointOf(BackendId id) const {
  const IdRegistry::Backend* backend = ids_.FindBackend(id);
  return backend == nullptr ? Endpoint{} : backend->endpoint;
}

MoveView Controller::ViewOf(const Move& move) const {
  return {.move = move,
          .service = NameOf(move.service),
          .from = EndpointOf(move.from),
          .to = EndpointOf(move.to)};
}

ServiceView Controller::ViewOf(const ServiceWithBackends& service) const {
  return {.spec = service.spec,
          .backends = static_cast<uint32_t>(service.backends.size()),
          .connections = loads_.ConnectionsOf(*ids_.IdOf(service.spec.vip))};
}

BackendView Controller::ViewOf(const std::string& service, const BackendSpec& backend) const {
  const BackendId id = *ids_.IdOf(desired_.at(service).spec.vip, backend.endpoint);
  const LoadTracker::BackendLoad load = loads_.LoadOf(id);
  const auto trouble = trouble_.find(id);
  return {.service = service,
          .endpoint = backend.endpoint,
          .weight = backend.weight,
          .state = StateOf(service, backend, id),
          .draining_since = backend.draining ? drains_.Since(id) : std::nullopt,
          .connections = load.connections,
          .open_streams = load.open_streams,
          .requests_per_second = load.rates.requests_per_second,
          .bytes_per_second = load.rates.bytes_per_second,
          .mean_latency_seconds = load.latency_seconds(),
          .load_of_share = ShareOf(service, id),
          .trouble = trouble == trouble_.end() ? "" : trouble->second};
}

BackendView::State Controller::StateOf(const std::string& service, const BackendSpec& backend,
                                       BackendId id) const {
  if (backend.draining) return BackendView::State::kDraining;
  const auto row = sync_.installed().backends.find(id);
  const bool is_offered =
      row != sync_.installed().backends.end() && row->second.state == BackendRow::State::kServing;
  if (!is_offered && HealthOf(desired_.at(service).spec, id) != Health::kUp)
    return BackendView::State::kDown;
  return IsEjected(service, id, Now()) ? BackendView::State::kEjected
                                       : BackendView::State::kServing;
}

double Controller::ShareOf(const std::string& service, BackendId id) const {
  const ServiceWithBackends& wanted = desired_.at(service);
  double total = 0, weights = 0, weight = 0, load = 0;
  for (const auto& [endpoint, backend] : wanted.backends) {
    const BackendId other = *ids_.IdOf(wanted.spec.vip, endpoint);
    const double of_other = LoadOf(loads_.LoadOf(other).rates, wanted.spec.policy.rebalance.signal);
    const auto row = sync_.installed().backends.find(other);
    const bool serves =
        row != sync_.installed().backends.end() && row->second.state == BackendRow::State::kServing;
    total += of_other;
    weights += serves ? backend.weight : 0;
    if (other != id) continue;
    weight = serves ? backend.weight : 0;
    load = of_other;
  }
  return total > 0 && weight > 0 ? load / (total * weight / weights) : 0;
}

std::vector<BackendView> Controller::RemovedBackends() const {
  std::vector<BackendView> views;
  for (const auto& [id, backend] : ids_.backends()) {
    const LoadTracker::BackendLoad load = loads_.LoadOf(id);
    if (!backend.retired || load.connections == 0) continue;
    views.push_back({.service = backend.service_name,
                     .endpoint = backend.endpoint,
                     .weight = 0,
                     .state = BackendView::State::kRemoved,
                     .draining_since = std::nullopt,
                     .connections = load.connections,
                     .open_streams = load.open_streams,
                     .requests_per_second = load.rates.requests_per_second,
                     .bytes_per_second = load.rates.bytes_per_second,
                     .mean_latency_seconds = load.latency_seconds(),
                     .load_of_share = 0,
                     .trouble = {}});
  }
  return views;
}

absl::StatusOr<StatusView> Controller::GetStatus() {
  absl::MutexLock lock(&mutex_);
  StatusView view = facts_;
  view.connections = occupancy_.flows / 2;
  view.connection_capacity = occupancy_.capacity / 2;
  return view;
}

absl::StatusOr<std::vector<ServiceView>> Controller::ListServices() {
  absl::MutexLock lock(&mutex_);
  looked_at_ = Now();
  if (absl::Status status = Scan(looked_at_); !status.ok()) return status;
  std::vector<ServiceView> views;
  for (const auto& [name, service] : desired_) views.push_back(ViewOf(service));
  return views;
}

absl::StatusOr<std::vector<BackendView>> Controller::ListBackends(
    const std::optional<std::string>& service) {
  absl::MutexLock lock(&mutex_);
  if (service && !desired_.contains(*service)) {
    return absl::NotFoundError(absl::StrCat("service: there is no service \"", *service, "\""));
  }
  looked_at_ = Now();
  if (absl::Status status = Scan(looked_at_); !status.ok()) return status;
  std::vector<BackendView> views = RemovedBackends();
  for (const auto& [name, wanted] : desired_) {
    for (const auto& [endpoint, backend] : wanted.backends) views.push_back(ViewOf(name, backend));
  }
  if (service)
    std::erase_if(views, [&](const BackendView& view) { return view.service != *service; });
  std::ranges::sort(views, {},
                    [](const BackendView& view) { return std::pair(view.service, view.endpoint); });
  return views;
}

absl::StatusOr<std::vector<ConnectionView>> Controller::ListConnections(
    const ConnectionFilter& filter) {
  absl::MutexLock lock(&mutex_);
  if (filter.service && !desired_.contains(*filter.service)) {
    return absl::NotFoundError(
        absl::StrCat("service: there is no service \"", *filter.service, "\""));
  }
  looked_at_ = Now();
  if (absl::Status status = Scan(looked_at_); !status.ok()) return status;
  std::vector<ConnectionView> views;
  for (const Connection& connection : connections_) {
    if (connection.closed) continue;
    ConnectionView view = {.connection = connection,
                           .service = NameOf(connection.service),
                           .backend = EndpointOf(connection.backend),
                           .requests_per_second = loads_.RatesOf(connection).requests_per_second};
    if (filter.Matches(view)) views.push_back(std::move(view));
  }
  return views;
}

absl::StatusOr<MoveView> Controller::FindMove(MoveId id) {
  absl::MutexLock lock(&mutex_);
  const Move* move = mover_.book().Find(id);
  if (move == nullptr)
    return absl::NotFoundError(absl::StrCat("move ", id, " is not known (any more)"));
  return ViewOf(*move);
}

absl::StatusOr<std::vector<MoveView>> Controller::ListMoves(
    const std::optional<std::string>& service, size_t limit) {
  absl::MutexLock lock(&mutex_);
  std::optional<ServiceId> id;
  if (service) {
    const auto found = desired_.find(*service);
    if (found == desired_.end()) {
      return absl::NotFoundError(absl::StrCat("service: there is no service \"", *service, "\""));
    }
    id = ids_.IdOf(found->second.spec.vip);
  }
  std::vector<MoveView> views;
  for (const Move& move : mover_.book().Newest(id, limit)) views.push_back(ViewOf(move));
  return views;
}

absl::StatusOr<CountersView> Controller::GetCounters() {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<std::map<std::string, uint64_t>> verdicts = ports_.flows.VerdictCounts();
  if (!verdicts.ok()) return verdicts.status();
  CountersView view = {.verdicts = *std::move(verdicts), .agent = {}};
  if (hooks_.counters) view.agent = hooks_.counters();
  for (const auto& [end, count] : moves_by_end_) view.agent["moves_" + end] = count;
  view.agent["goaways_sent"] = mover_.goaways_sent();
  view.agent["goaways_failed"] = mover_.goaways_failed();
  view.agent["flows_expired"] = expired_;
  view.agent["connections_reset"] = connections_reset_;
  return view;
}

std::shared_ptr<EventQueue> Controller::Watch(bool connections) {
  absl::MutexLock lock(&mutex_);
  return broadcast_.Watch(connections);
}

}  // namespace unpin
