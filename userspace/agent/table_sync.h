// SPDX-License-Identifier: Apache-2.0
// Makes the data plane's tables equal to what is wanted, whole or not at all.
#pragma once

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "userspace/agent/id_registry.h"
#include "userspace/model/ports.h"
#include "userspace/policy/maglev_table.h"

namespace unpin {

struct ServiceImage {
  ServiceRow row;
  std::vector<WeightedBackend> offered;  // what its table is built from
  friend bool operator==(const ServiceImage&, const ServiceImage&) = default;
};

struct TableImage {
  std::map<BackendId, BackendRow> backends;
  std::map<Endpoint, ServiceImage> services;  // by VIP, as in the data plane
  friend bool operator==(const TableImage&, const TableImage&) = default;
};

using BackendStates = std::map<BackendId, BackendRow::State>;

// `states` of the desired backends. Retired ones keep a row, offered to nobody.
TableImage ImageOf(const Desired& desired, const IdRegistry& ids, const BackendStates& states);

class TableSync {
 public:
  TableSync(Tables& tables, uint32_t slots) : tables_(tables), slots_(slots) {}

  // What an earlier agent left. Its Maglev tables are not known and will be built anew.
  void Adopt(const std::vector<ServiceRow>& services, const std::vector<BackendRow>& backends);

  // New backends first, then the tables that offer them, then what is no longer offered. On failure everything is
  // put back as it was; the error says so if that failed too, and the next Sync tries again.
  absl::Status Sync(const TableImage& wanted);

  const TableImage& installed() const { return installed_; }

 private:
  absl::Status Advance(const TableImage& wanted);
  absl::Status PutBackends(const TableImage& wanted, bool serving);
  absl::Status PutServices(const TableImage& wanted);
  absl::Status EraseServices(const TableImage& wanted);
  absl::Status EraseBackends(const TableImage& wanted);

  Tables& tables_;
  const uint32_t slots_;
  TableImage installed_;
};

}  // namespace unpin
