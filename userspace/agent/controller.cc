// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/controller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "userspace/agent/validate.h"

namespace unpin {
namespace {

absl::Status NoSuchService(const std::string& service) {
  return absl::NotFoundError(absl::StrCat("service: there is no service \"", service, "\""));
}

std::vector<Endpoint> EndpointsOf(const Desired& desired) {
  std::vector<Endpoint> endpoints;
  for (const auto& [name, service] : desired) {
    for (const auto& [endpoint, backend] : service.backends) endpoints.push_back(endpoint);
  }
  return endpoints;
}

}  // namespace

Controller::Controller(const Ports& ports, Hooks hooks, StatusView facts, uint32_t maglev_slots,
                       MoveId first_move)
    : ports_(ports),
      hooks_(std::move(hooks)),
      facts_(std::move(facts)),
      sync_(ports.tables, maglev_slots),
      mover_(ports.splicer, MoveSettings{}, first_move) {}

absl::Status Controller::Start(const Config& config, TimePoint now) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<std::vector<ServiceRow>> services = ports_.tables.ReadServices();
  if (!services.ok()) return services.status();
  const absl::StatusOr<std::vector<BackendRow>> backends = ports_.tables.ReadBackends();
  if (!backends.ok()) return backends.status();
  ids_ = IdRegistry::Adopted(*services, *backends, now);
  sync_.Adopt(*services, *backends);
  mover_.SetSettings(config.settings.moves);

  ports_.store.Rebase(config.desired);
  absl::Status status = Commit(ports_.store.Merge(config.desired), config.settings, now);
  if (!status.ok()) return status;

  const absl::StatusOr<std::vector<ConnectionKey>> unacknowledged = ports_.splicer.Unacknowledged();
  if (!unacknowledged.ok()) return unacknowledged.status();
  for (const ConnectionKey& key : *unacknowledged) {
    const absl::StatusOr<Connection> connection =
        ports_.flows.Find(key, now, settings_.moves.min_age);
    if (connection.ok()) mover_.Adopt(key, connection->service, connection->backend, now);
  }
  PublishMoves(now);
  return absl::OkStatus();
}

absl::Status Controller::Reload(const Config& config, TimePoint now) {
  absl::MutexLock lock(&mutex_);
  const Desired merged = ports_.store.Merge(config.desired);
  absl::Status status = Commit(merged, config.settings, now);
  if (!status.ok()) return status;
  ports_.store.Rebase(config.desired);
  mover_.SetSettings(config.settings.moves);
  Publish("configuration-reloaded", "", "the configuration file was read again", now);
  return ports_.store.Save(desired_);
}

// Tables and store, or neither.
absl::Status Controller::Install(const Desired& desired, const IdRegistry& ids, TimePoint now) {
  const TableImage before = sync_.installed();
  absl::Status status = sync_.Sync(ImageOf(desired, ids, StatesOf(desired, ids, now)));
  if (!status.ok()) return status;
  status = ports_.store.Save(desired);
  if (!status.ok()) status.Update(sync_.Sync(before));
  return status;
}

absl::Status Controller::Commit(const Desired& desired, const Settings& settings, TimePoint now) {
  absl::Status status =
      ValidateDesired(desired, {.snat_addresses = settings.snat.addresses.size()});
  if (!status.ok()) return status;
  absl::StatusOr<IdRegistry> ids = ids_.With(desired, now);
  if (!ids.ok()) return ids.status();
  const std::vector<BackendId> newcomers = AwaitNewcomers(desired, *ids);
  status = Install(desired, *ids, now);
  if (!status.ok()) {
    for (const BackendId id : newcomers) health_.erase(id);
    return status;
  }
  const Desired old = std::exchange(desired_, desired);
  ids_ = *std::move(ids);
  settings_ = settings;
  UpdateDrains(now);
  if (hooks_.backends_changed) hooks_.backends_changed(EndpointsOf(desired_));
  if (hooks_.targets_changed) hooks_.targets_changed(TargetsOf(desired_));
  for (const auto& [name, service] : desired_) gates_.try_emplace(name);
  Hurry(now);
  return absl::OkStatus();
}

absl::StatusOr<ServiceView> Controller::AddService(const ServiceSpec& spec) {
  absl::MutexLock lock(&mutex_);
  if (desired_.contains(spec.name)) {
    return absl::AlreadyExistsError(absl::StrCat("name: service ", spec.name, " exists"));
  }
  Desired desired = desired_;
  desired[spec.name].spec = spec;
  absl::Status status = Commit(desired, settings_, Now());
  if (!status.ok()) return status;
  Publish("service-added", spec.name,
          absl::StrCat("service ", spec.name, " at ", spec.vip.ToString()), Now());
  return ViewOf(desired_.at(spec.name));
}

absl::Status Controller::RemoveService(const std::string& service) {
  absl::MutexLock lock(&mutex_);
  Desired desired = desired_;
  if (desired.erase(service) == 0) return NoSuchService(service);
  absl::Status status = Commit(desired, settings_, Now());
  if (status.ok())
    Publish("service-removed", service, absl::StrCat("service ", service, " removed"), Now());
  return status;
}

absl::StatusOr<BackendView> Controller::CommitBackend(const Desired& desired,
                                                      const std::string& service,
                                                      const Endpoint& backend, const char* event) {
  absl::Status status = Commit(desired, settings_, Now());
  if (!status.ok()) return status;
  const BackendSpec& spec = desired_.at(service).backends.at(backend);
  Publish(event, service,
          absl::StrCat("backend ", backend.ToString(), " of ", service, ", weight ", spec.weight,
                       spec.draining ? ", draining" : ""),
          Now());
  return ViewOf(service, spec);
}

absl::StatusOr<BackendView> Controller::AddBackend(const std::string& service,
                                                   const BackendSpec& spec) {
  absl::MutexLock lock(&mutex_);
  Desired desired = desired_;
  const auto found = desired.find(service);
  if (found == desired.end()) return NoSuchService(service);
  if (!found->second.backends.emplace(spec.endpoint, spec).second) {
    return absl::AlreadyExistsError(absl::StrCat("address: service ", service, " has backend ",
                                                 spec.endpoint.ToString(), " already"));
  }
  return CommitBackend(desired, service, spec.endpoint, "backend-added");
}

absl::StatusOr<Desired> Controller::EditBackend(const std::string& service, const Endpoint& backend,
                                                const std::function<void(BackendSpec&)>& edit) {
  Desired desired = desired_;
  const auto found = desired.find(service);
  if (found == desired.end()) return NoSuchService(service);
  const auto spec = found->second.backends.find(backend);
  if (spec == found->second.backends.end()) {
    return absl::NotFoundError(
        absl::StrCat("address: service ", service, " has no backend ", backend.ToString()));
  }
  edit(spec->second);
  return desired;
}

absl::StatusOr<BackendView> Controller::SetBackendWeight(const std::string& service,
                                                         Endpoint backend, uint32_t weight) {
  absl::MutexLock lock(&mutex_);
  const auto desired =
      EditBackend(service, backend, [&](BackendSpec& spec) { spec.weight = weight; });
  if (!desired.ok()) return desired.status();
  return CommitBackend(*desired, service, backend, "backend-changed");
}

absl::Status Controller::RemoveBackend(const std::string& service, Endpoint backend) {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<Desired> desired = EditBackend(service, backend, [](BackendSpec&) {});
  if (!desired.ok()) return desired.status();
  desired->at(service).backends.erase(backend);
  absl::Status status = Commit(*desired, settings_, Now());
  if (status.ok()) {
    Publish("backend-removed", service,
            absl::StrCat("backend ", backend.ToString(), " of ", service,
                         " removed; its connections stay until they end"),
            Now());
  }
  return status;
}

absl::StatusOr<BackendView> Controller::DrainBackend(const std::string& service, Endpoint backend,
                                                     Duration window) {
  absl::MutexLock lock(&mutex_);
  const auto desired =
      EditBackend(service, backend, [](BackendSpec& spec) { spec.draining = true; });
  if (!desired.ok()) return desired.status();
  const absl::StatusOr<BackendView> view =
      CommitBackend(*desired, service, backend, "backend-draining");
  if (!view.ok()) return view;
  const ServiceWithBackends& wanted = desired_.at(service);
  drains_.Begin(*ids_.IdOf(wanted.spec.vip, backend), window, Now());
  if (hooks_.wake) hooks_.wake();
  return ViewOf(service, wanted.backends.at(backend));
}

absl::StatusOr<BackendView> Controller::UndrainBackend(const std::string& service,
                                                       Endpoint backend) {
  absl::MutexLock lock(&mutex_);
  const auto desired =
      EditBackend(service, backend, [](BackendSpec& spec) { spec.draining = false; });
  if (!desired.ok()) return desired.status();
  return CommitBackend(*desired, service, backend, "backend-undrained");
}

void Controller::ForgetRetired(TimePoint now) {
  if (!ids_.HasRetired() || !Scan(now).ok()) return;
  IdRegistry::InUse in_use;
  for (const Connection& connection : connections_) {
    in_use.services.insert(connection.service);
    in_use.backends.insert(connection.backend);
  }
  const IdRegistry ids = ids_.Without(in_use, now);
  if (!sync_.Sync(ImageOf(desired_, ids, StatesOf(desired_, ids, now))).ok()) return;
  ids_ = ids;
  std::erase_if(health_,
                [&](const auto& entry) { return ids_.FindBackend(entry.first) == nullptr; });
  std::erase_if(trouble_, [&](const auto& entry) { return !health_.contains(entry.first); });
}

}  // namespace unpin
