// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/id_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace unpin {

IdRegistry IdRegistry::Adopted(std::span<const ServiceRow> services,
                               std::span<const BackendRow> backends, TimePoint now) {
  IdRegistry registry;
  for (const ServiceRow& row : services) {
    registry.services_[row.id] = {.id = row.id, .name = "", .vip = row.vip, .retired = now};
    registry.service_ids_[row.vip] = row.id;
  }
  for (const BackendRow& row : backends) {
    registry.backends_[row.id] = {.id = row.id,
                                  .service = row.service,
                                  .service_name = "",
                                  .endpoint = row.endpoint,
                                  .retired = now};
    registry.backend_ids_[{row.service, row.endpoint}] = row.id;
    // The rows of a removed service's backends outlive the service's own.
    registry.services_.try_emplace(
        row.service, Service{.id = row.service, .name = "", .vip = {}, .retired = now});
  }
  return registry;
}

absl::StatusOr<IdRegistry> IdRegistry::With(const Desired& desired, TimePoint now) const {
  IdRegistry next = *this;
  next.Retire(now);
  BackendId free = 1;
  for (const auto& [name, service] : desired) {
    const absl::StatusOr<ServiceId> id = next.Claim(service.spec);
    if (!id.ok()) return id.status();
    for (const auto& [endpoint, backend] : service.backends) {
      const absl::StatusOr<BackendId> claimed = next.Claim(next.services_[*id], endpoint, free);
      if (!claimed.ok()) return claimed.status();
      free = std::max(free, *claimed);
    }
  }
  return next;
}

void IdRegistry::Retire(TimePoint now) {
  for (auto& [id, service] : services_) {
    if (!service.retired) service.retired = now;
  }
  for (auto& [id, backend] : backends_) {
    if (!backend.retired) backend.retired = now;
  }
}

absl::StatusOr<ServiceId> IdRegistry::Claim(const ServiceSpec& spec) {
  ServiceId id = 0;
  if (const auto known = service_ids_.find(spec.vip); known != service_ids_.end()) {
    id = known->second;
  } else {
    while (services_.contains(id)) ++id;
    if (id >= kServices) {
      return absl::ResourceExhaustedError(
          absl::StrCat("services: all ", kServices,
                       " ids are taken, some by removed services that still have connections"));
    }
  }
  services_[id] = {.id = id, .name = spec.name, .vip = spec.vip, .retired = std::nullopt};
  service_ids_[spec.vip] = id;
  return id;
}

absl::StatusOr<BackendId> IdRegistry::Claim(const Service& service, const Endpoint& endpoint,
                                            BackendId lowest_free) {
  const auto known = backend_ids_.find({service.id, endpoint});
  BackendId id = lowest_free;
  if (known != backend_ids_.end()) {
    id = known->second;
  } else {
    while (backends_.contains(id)) ++id;
    if (id >= kBackends) {
      return absl::ResourceExhaustedError(
          absl::StrCat("backends: all ", kBackends - 1,
                       " ids are taken, some by removed backends that still have connections"));
    }
  }
  backends_[id] = {.id = id,
                   .service = service.id,
                   .service_name = service.name,
                   .endpoint = endpoint,
                   .retired = std::nullopt};
  backend_ids_[{service.id, endpoint}] = id;
  return id;
}

IdRegistry IdRegistry::Without(const InUse& in_use, TimePoint now) const {
  IdRegistry next = *this;
  const auto quiet = [&](const std::optional<TimePoint>& retired) {
    return retired && now - *retired >= kQuietTime;
  };
  std::erase_if(next.backends_, [&](const auto& entry) {
    const Backend& backend = entry.second;
    if (!quiet(backend.retired) || in_use.backends.contains(backend.id)) return false;
    next.backend_ids_.erase({backend.service, backend.endpoint});
    return true;
  });
  std::set<ServiceId> needed = in_use.services;
  for (const auto& [id, backend] : next.backends_) needed.insert(backend.service);
  std::erase_if(next.services_, [&](const auto& entry) {
    const Service& service = entry.second;
    if (!quiet(service.retired) || needed.contains(service.id)) return false;
    if (const auto it = next.service_ids_.find(service.vip);
        it != next.service_ids_.end() && it->second == service.id) {
      next.service_ids_.erase(it);
    }
    return true;
  });
  return next;
}

bool IdRegistry::HasRetired() const {
  const auto retired = [](const auto& entry) { return entry.second.retired.has_value(); };
  return std::ranges::any_of(backends_, retired) || std::ranges::any_of(services_, retired);
}

const IdRegistry::Service* IdRegistry::FindService(ServiceId id) const {
  const auto it = services_.find(id);
  return it == services_.end() ? nullptr : &it->second;
}

const IdRegistry::Backend* IdRegistry::FindBackend(BackendId id) const {
  const auto it = backends_.find(id);
  return it == backends_.end() ? nullptr : &it->second;
}

std::optional<ServiceId> IdRegistry::IdOf(const Endpoint& vip) const {
  const auto it = service_ids_.find(vip);
  if (it == service_ids_.end() || services_.at(it->second).retired) return std::nullopt;
  return it->second;
}

std::optional<BackendId> IdRegistry::IdOf(const Endpoint& vip, const Endpoint& backend) const {
  const std::optional<ServiceId> service = IdOf(vip);
  if (!service) return std::nullopt;
  const auto it = backend_ids_.find({*service, backend});
  if (it == backend_ids_.end() || backends_.at(it->second).retired) return std::nullopt;
  return it->second;
}

}  // namespace unpin
