// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/table_sync.h"

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

// Stands for the unknown table of an earlier agent: equal to no table that is wanted.
const WeightedBackend kUnknown = {.id = 0, .identity = 0, .weight = 0};

ServiceImage ServiceImageOf(const ServiceWithBackends& service, const IdRegistry& ids,
                            const BackendStates& states) {
  ServiceImage image;
  image.row = {.id = *ids.IdOf(service.spec.vip),
               .vip = service.spec.vip,
               .snat = service.spec.snat,
               .source_hash = service.spec.policy.source_hash,
               .new_per_second = service.spec.policy.new_per_second};
  for (const auto& [endpoint, backend] : service.backends) {
    const BackendId id = *ids.IdOf(service.spec.vip, endpoint);
    if (states.at(id) != BackendRow::State::kServing || backend.weight == 0) continue;
    image.offered.push_back(
        {.id = id, .identity = BackendIdentity(endpoint), .weight = backend.weight});
  }
  return image;
}

}  // namespace

TableImage ImageOf(const Desired& desired, const IdRegistry& ids, const BackendStates& states) {
  TableImage image;
  for (const auto& [id, backend] : ids.backends()) {
    if (!backend.retired) continue;
    image.backends[id] = {.id = id,
                          .service = backend.service,
                          .endpoint = backend.endpoint,
                          .state = BackendRow::State::kDown};
  }
  for (const auto& [name, service] : desired) {
    const ServiceImage& made = image.services[service.spec.vip] =
        ServiceImageOf(service, ids, states);
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids.IdOf(service.spec.vip, endpoint);
      image.backends[id] = {
          .id = id, .service = made.row.id, .endpoint = endpoint, .state = states.at(id)};
    }
  }
  return image;
}

void TableSync::Adopt(const std::vector<ServiceRow>& services,
                      const std::vector<BackendRow>& backends) {
  for (const ServiceRow& row : services) {
    installed_.services[row.vip] = {.row = row, .offered = {kUnknown}};
  }
  for (const BackendRow& row : backends) installed_.backends[row.id] = row;
}

absl::Status TableSync::Sync(const TableImage& wanted) {
  const TableImage before = installed_;
  const absl::Status status = Advance(wanted);
  if (status.ok()) return status;
  const absl::Status back = Advance(before);
  if (back.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; putting the tables back failed too: ", back.message()));
}

// Does all it can and returns the first error.
absl::Status TableSync::Advance(const TableImage& wanted) {
  absl::Status status = PutBackends(wanted, /*serving=*/true);
  status.Update(PutServices(wanted));
  if (!status.ok()) return status;  // what is still offered must stay
  status.Update(EraseServices(wanted));
  status.Update(PutBackends(wanted, /*serving=*/false));
  status.Update(EraseBackends(wanted));
  return status;
}

// A put that failed is noted as done: whether it was is not known, and noting it makes the way back undo it.
absl::Status TableSync::PutBackends(const TableImage& wanted, bool serving) {
  absl::Status status;
  for (const auto& [id, row] : wanted.backends) {
    if ((row.state == BackendRow::State::kServing) != serving) continue;
    if (const auto it = installed_.backends.find(id);
        it != installed_.backends.end() && it->second == row) {
      continue;
    }
    installed_.backends[id] = row;
    status.Update(
        Annotate(tables_.PutBackend(row), absl::StrCat("put backend ", row.endpoint.ToString())));
  }
  return status;
}

absl::Status TableSync::PutServices(const TableImage& wanted) {
  absl::Status status;
  for (const auto& [vip, service] : wanted.services) {
    if (const auto it = installed_.services.find(vip);
        it != installed_.services.end() && it->second == service) {
      continue;
    }
    // A table of an earlier agent cannot be put back: it is a subset of what is wanted, built anew.
    std::vector<WeightedBackend> offered = service.offered;
    std::erase(offered, kUnknown);
    installed_.services[vip] = service;
    status.Update(Annotate(tables_.PutService(service.row, BuildMaglevTable(offered, slots_)),
                           absl::StrCat("put service ", vip.ToString())));
  }
  return status;
}

absl::Status TableSync::EraseServices(const TableImage& wanted) {
  absl::Status status;
  std::erase_if(installed_.services, [&](const auto& entry) {
    if (wanted.services.contains(entry.first)) return false;
    const absl::Status erased = tables_.EraseService(entry.second.row);
    status.Update(Annotate(erased, absl::StrCat("erase service ", entry.first.ToString())));
    return erased.ok();
  });
  return status;
}

absl::Status TableSync::EraseBackends(const TableImage& wanted) {
  absl::Status status;
  std::erase_if(installed_.backends, [&](const auto& entry) {
    if (wanted.backends.contains(entry.first)) return false;
    const absl::Status erased = tables_.EraseBackend(entry.first);
    status.Update(
        Annotate(erased, absl::StrCat("erase backend ", entry.second.endpoint.ToString())));
    return erased.ok();
  });
  return status;
}

}  // namespace unpin
