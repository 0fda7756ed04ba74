// SPDX-License-Identifier: Apache-2.0
// Changes of services and backends: checked as a whole, put into the tables, kept on disk, and only then true.
#include <set>

#include "absl/strings/str_cat.h"
#include "userspace/agent/controller.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr Duration kDefaultDrainWindow = std::chrono::seconds(1);

absl::StatusOr<ServiceWithBackends*> Find(Desired& desired, const std::string& service) {
  const auto it = desired.find(service);
  if (it != desired.end()) return &it->second;
  return absl::NotFoundError(absl::StrCat("service: there is no service ", service));
}

absl::StatusOr<BackendSpec*> Find(Desired& desired, const std::string& service, Endpoint backend) {
  const absl::StatusOr<ServiceWithBackends*> found = Find(desired, service);
  if (!found.ok()) return found.status();
  const auto it = (*found)->backends.find(backend);
  if (it != (*found)->backends.end()) return &it->second;
  return absl::NotFoundError(
      absl::StrCat("backend: service ", service, " has no backend ", backend.ToString()));
}

}  // namespace

absl::Status Controller::ChangeDesired(const Change& change) {
  Desired next = desired_;
  if (absl::Status status = change(next); !status.ok()) return status;
  return Install(std::move(next), settings_.limits, /*save=*/true);
}

absl::Status Controller::Install(Desired next, const DesiredLimits& limits, bool save) {
  if (absl::Status status = ValidateDesired(next, limits); !status.ok()) return status;
  const TimePoint now = surroundings_.clock();
  absl::StatusOr<IdRegistry> ids = ids_.With(next, now);
  if (!ids.ok()) return ids.status();

  const TableImage before = sync_.installed();
  if (absl::Status status = sync_.Sync(ImageOf(next, *ids)); !status.ok()) return status;
  if (save) {
    if (absl::Status saved = store_.Save(next); !saved.ok()) {
      const absl::Status back = sync_.Sync(before);
      return back.ok() ? saved
                       : absl::Status(saved.code(),
                                      absl::StrCat(saved.message(),
                                                   "; taking the change back: ", back.message()));
    }
  }
  desired_ = std::move(next);
  ids_ = *std::move(ids);
  FollowDrains(now);
  return absl::OkStatus();
}

// Every backend that is to drain does, and no other.
void Controller::FollowDrains(TimePoint now) {
  std::set<BackendId> draining;
  for (const auto& [name, service] : desired_) {
    for (const auto& [endpoint, backend] : service.backends) {
      if (!backend.draining) continue;
      const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
      draining.insert(id);
      if (!drainer_.IsDraining(id)) drainer_.Begin(id, now, kDefaultDrainWindow);
    }
  }
  drainer_.EndAllBut([&](BackendId id) { return draining.contains(id); });
}

absl::StatusOr<ServiceView> Controller::AddService(const ServiceSpec& spec) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = ChangeDesired([&](Desired& next) {
    if (next.contains(spec.name)) {
      return absl::AlreadyExistsError(
          absl::StrCat("service.name: there is a service ", spec.name, " already"));
    }
    next[spec.name].spec = spec;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  Tell("service-added", spec.name,
       absl::StrCat("service ", spec.name, " at ", spec.vip.ToString()));
  return ServiceView{.spec = spec};
}

absl::Status Controller::RemoveService(const std::string& service) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = ChangeDesired([&](Desired& next) {
    if (const auto found = Find(next, service); !found.ok()) return found.status();
    next.erase(service);
    return absl::OkStatus();
  });
  if (status.ok()) Tell("service-removed", service, absl::StrCat("service ", service));
  return status;
}

absl::StatusOr<BackendView> Controller::AddBackend(const std::string& service,
                                                   const BackendSpec& spec) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = ChangeDesired([&](Desired& next) {
    const auto found = Find(next, service);
    if (!found.ok()) return found.status();
    if (!(*found)->backends.emplace(spec.endpoint, spec).second) {
      return absl::AlreadyExistsError(absl::StrCat("backend: service ", service, " has a backend ",
                                                   spec.endpoint.ToString(), " already"));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  Tell("backend-added", service,
       absl::StrCat("backend ", spec.endpoint.ToString(), ", weight ", spec.weight));
  return ViewOf(service, spec.endpoint);
}

absl::Status Controller::RemoveBackend(const std::string& service, Endpoint backend) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = ChangeDesired([&](Desired& next) {
    if (const auto found = Find(next, service, backend); !found.ok()) return found.status();
    next[service].backends.erase(backend);
    return absl::OkStatus();
  });
  if (status.ok()) {
    Tell("backend-removed", service, absl::StrCat("backend ", backend.ToString()));
  }
  return status;
}

absl::Status Controller::ChangeBackend(const std::string& service, Endpoint backend,
                                       const std::function<void(BackendSpec&)>& change) {
  return ChangeDesired([&](Desired& next) {
    const auto found = Find(next, service, backend);
    if (found.ok()) change(**found);
    return found.status();
  });
}

absl::StatusOr<BackendView> Controller::SetBackendWeight(const std::string& service,
                                                         Endpoint backend, uint32_t weight) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status =
      ChangeBackend(service, backend, [&](BackendSpec& spec) { spec.weight = weight; });
  if (!status.ok()) return status;
  Tell("backend-weight", service,
       absl::StrCat("backend ", backend.ToString(), " now has weight ", weight));
  return ViewOf(service, backend);
}

absl::StatusOr<BackendView> Controller::DrainBackend(const std::string& service, Endpoint backend,
                                                     Duration window) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status =
      ChangeBackend(service, backend, [](BackendSpec& spec) { spec.draining = true; });
  if (!status.ok()) return status;
  const BackendId id = *ids_.IdOf(desired_.at(service).spec.vip, backend);
  drainer_.Begin(id, surroundings_.clock(), window);
  Tell("backend-draining", service,
       absl::StrCat("backend ", backend.ToString(), " gets no new connections",
                    HasTarget(id) ? "; those it has are moved away"
                                  : "; those it has stay: no other backend is serving"));
  surroundings_.wake();
  return ViewOf(service, backend);
}

absl::StatusOr<BackendView> Controller::UndrainBackend(const std::string& service,
                                                       Endpoint backend) {
  absl::MutexLock lock(&mutex_);
  const absl::Status status =
      ChangeBackend(service, backend, [](BackendSpec& spec) { spec.draining = false; });
  if (!status.ok()) return status;
  Tell("backend-undrained", service,
       absl::StrCat("backend ", backend.ToString(), " gets new connections again"));
  return ViewOf(service, backend);
}

}  // namespace unpin
