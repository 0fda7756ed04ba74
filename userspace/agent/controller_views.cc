// SPDX-License-Identifier: Apache-2.0
// What an operator sees.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "userspace/agent/controller.h"
#include "userspace/base/status.h"

namespace unpin {

absl::StatusOr<std::vector<Connection>> Controller::Scan(TimePoint now) {
  auto connections = flows_.List(now, settings_.moves.min_age);
  if (!connections.ok()) return Annotate(connections.status(), "read the connections");
  meter_.Observe(*connections, now);
  last_scan_ = now;
  return connections;
}

Controller::Loads Controller::LoadsOf(const std::vector<Connection>& connections) const {
  Loads loads;
  for (const Connection& connection : connections) {
    Load& load = loads[connection.backend];
    load.rates += meter_.Of(connection);  // what a connection did before it closed was work too
    if (connection.closed) continue;
    ++load.connections;
    load.open_streams += connection.open_streams();
  }
  return loads;
}

absl::StatusOr<StatusView> Controller::GetStatus() {
  absl::MutexLock lock(&mutex_);
  StatusView status = surroundings_.status;
  status.connections = occupancy_.flows / 2;
  status.connection_capacity = occupancy_.capacity / 2;
  return status;
}

absl::StatusOr<std::vector<ServiceView>> Controller::ListServices() {
  absl::MutexLock lock(&mutex_);
  const auto connections = Scan(surroundings_.clock());
  if (!connections.ok()) return connections.status();
  std::map<ServiceId, uint64_t> counts;
  for (const Connection& connection : *connections) {
    if (!connection.closed) ++counts[connection.service];
  }
  std::vector<ServiceView> views;
  for (const auto& [name, service] : desired_) {
    views.push_back({.spec = service.spec,
                     .backends = static_cast<uint32_t>(service.backends.size()),
                     .connections = counts[*ids_.IdOf(service.spec.vip)]});
  }
  return views;
}

absl::StatusOr<std::vector<BackendView>> Controller::ListBackends(
    const std::optional<std::string>& service) {
  absl::MutexLock lock(&mutex_);
  if (service && !desired_.contains(*service)) {
    return absl::NotFoundError(absl::StrCat("service: there is no service ", *service));
  }
  last_looked_ = surroundings_.clock();
  const auto connections = Scan(*last_looked_);
  if (!connections.ok()) return connections.status();
  const Loads loads = LoadsOf(*connections);
  std::vector<BackendView> views;
  for (const auto& [id, backend] : ids_.backends()) {
    if (service && backend.service_name != *service) continue;
    BackendView view = ViewOf(backend, loads);
    if (view.state == BackendView::State::kRemoved && view.connections == 0) continue;
    views.push_back(std::move(view));
  }
  std::ranges::sort(views, {},
                    [](const BackendView& view) { return std::tie(view.service, view.endpoint); });
  return views;
}

absl::StatusOr<BackendView> Controller::ViewOf(const std::string& service, Endpoint backend) {
  const auto connections = Scan(surroundings_.clock());
  // The change itself has succeeded: without its connections the answer is still true.
  const Loads loads = connections.ok() ? LoadsOf(*connections) : Loads{};
  const BackendId id = *ids_.IdOf(desired_.at(service).spec.vip, backend);
  return ViewOf(*ids_.FindBackend(id), loads);
}

BackendView Controller::ViewOf(const IdRegistry::Backend& backend, const Loads& loads) const {
  BackendView view;
  view.service = backend.service_name;
  view.endpoint = backend.endpoint;
  view.state = BackendView::State::kRemoved;
  const ServiceWithBackends* service = FindDesired(backend.service);
  if (service != nullptr && !backend.retired) {
    const BackendSpec& spec = service->backends.at(backend.endpoint);
    view.weight = spec.weight;
    view.state = spec.draining ? BackendView::State::kDraining : BackendView::State::kServing;
    view.draining_since = drainer_.Since(backend.id);
  }
  if (const auto load = loads.find(backend.id); load != loads.end()) {
    view.connections = load->second.connections;
    view.open_streams = load->second.open_streams;
    view.requests_per_second = load->second.rates.requests_per_second;
    view.bytes_per_second = load->second.rates.bytes_per_second;
  }
  return view;
}

absl::StatusOr<std::vector<ConnectionView>> Controller::ListConnections(
    const ConnectionFilter& filter) {
  absl::MutexLock lock(&mutex_);
  if (filter.service && !desired_.contains(*filter.service)) {
    return absl::NotFoundError(absl::StrCat("service: there is no service ", *filter.service));
  }
  last_looked_ = surroundings_.clock();
  const auto connections = Scan(*last_looked_);
  if (!connections.ok()) return connections.status();
  std::vector<ConnectionView> views;
  for (const Connection& connection : *connections) {
    if (connection.closed) continue;
    ConnectionView view = {.connection = connection,
                           .service = ServiceName(connection.service),
                           .backend = BackendEndpoint(connection.backend),
                           .requests_per_second = meter_.Of(connection).requests_per_second};
    if (filter.Matches(view)) views.push_back(std::move(view));
  }
  return views;
}

absl::StatusOr<CountersView> Controller::GetCounters() {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<std::map<std::string, uint64_t>> verdicts = flows_.VerdictCounts();
  if (!verdicts.ok()) return Annotate(verdicts.status(), "read the verdict counts");
  CountersView view = {.verdicts = *std::move(verdicts), .agent = surroundings_.counters()};
  view.agent["goaways-sent"] = mover_.goaways_sent();
  view.agent["goaways-failed"] = mover_.goaways_failed();
  view.agent["connections-expired"] = expired_flows_;
  for (const MoveState state :
       {MoveState::kPlanned, MoveState::kSent, MoveState::kAcknowledged, MoveState::kReconnected,
        MoveState::kExpired, MoveState::kRefused}) {
    const auto count = moves_by_state_.find(state);
    view.agent[absl::StrCat("moves-", ToString(state))] =
        count == moves_by_state_.end() ? 0 : count->second;
  }
  return view;
}

MoveView Controller::ViewOf(const Move& move) const {
  return {.move = move,
          .service = ServiceName(move.service),
          .from = BackendEndpoint(move.from),
          .to = BackendEndpoint(move.to)};
}

const ServiceWithBackends* Controller::FindDesired(ServiceId id) const {
  const IdRegistry::Service* service = ids_.FindService(id);
  if (service == nullptr || service->retired) return nullptr;
  return &desired_.at(service->name);
}

std::string Controller::ServiceName(ServiceId id) const {
  const IdRegistry::Service* service = ids_.FindService(id);
  return service == nullptr || service->name.empty() ? absl::StrCat("removed-", id) : service->name;
}

Endpoint Controller::BackendEndpoint(BackendId id) const {
  const IdRegistry::Backend* backend = ids_.FindBackend(id);
  return backend == nullptr ? Endpoint{} : backend->endpoint;
}

std::string Controller::BackendName(BackendId id) const {
  const IdRegistry::Backend* backend = ids_.FindBackend(id);
  return backend == nullptr ? absl::StrCat("a removed backend, id ", id)
                            : backend->endpoint.ToString();
}

}  // namespace unpin
