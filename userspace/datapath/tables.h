// SPDX-License-Identifier: Apache-2.0
// Services, backends and Maglev tables in the kernel.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "bpf/endpoint_filter.h"
#include "userspace/datapath/bpf_map.h"
#include "userspace/datapath/program.h"
#include "userspace/model/ports.h"

namespace unpin {

class KernelTables final : public Tables {
 public:
  // `program` must outlive the tables.
  static absl::StatusOr<std::unique_ptr<KernelTables>> Open(const Program& program);

  absl::StatusOr<std::vector<ServiceRow>> ReadServices() override;
  absl::StatusOr<std::vector<BackendRow>> ReadBackends() override;
  absl::Status PutBackend(const BackendRow& row) override;
  absl::Status EraseBackend(BackendId id) override;
  absl::Status PutService(const ServiceRow& row, std::span<const BackendId> slots) override;
  absl::Status EraseService(const ServiceRow& row) override;
  absl::Status SetRoom(BackendId id, std::optional<uint32_t> room) override;

 private:
  using Services = BpfMap<unpin_service_key, unpin_service>;
  using Backends = BpfMap<uint32_t, unpin_backend>;
  using Standings = BpfMap<uint32_t, unpin_standing>;
  using Endpoints = BpfMap<uint32_t, unpin_endpoint_filter>;

  KernelTables(Services services, Backends backends, Standings standings, Endpoints endpoints,
               int maglev_tables_fd)
      : services_(std::move(services)),
        backends_(std::move(backends)),
        standings_(std::move(standings)),
        endpoints_(std::move(endpoints)),
        maglev_tables_fd_(maglev_tables_fd) {}

  // From now on packets to or from there are looked at.
  absl::Status Expect(const Endpoint& endpoint);
  absl::Status InstallTable(ServiceId id, std::span<const BackendId> slots);

  Services services_;
  Backends backends_;
  Standings standings_;
  Endpoints endpoints_;
  int maglev_tables_fd_;
};

}  // namespace unpin
