// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/tables.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <numeric>

#include "absl/strings/str_cat.h"
#include "bpf/endpoint_filter.h"
#include "userspace/base/status.h"
#include "userspace/base/unique_fd.h"
#include "userspace/datapath/abi_convert.h"

namespace unpin {
namespace {

unpin_service_key KeyOf(const Endpoint& vip) {
  return {.address = htonl(vip.address.bits),
          .port = htons(vip.port),
          .protocol = IPPROTO_TCP,
          .pad = 0};
}

__u16 ToAbi(BackendRow::State state) {
  switch (state) {
    case BackendRow::State::kServing:
      return UNPIN_BACKEND_SERVING;
    case BackendRow::State::kDraining:
      return UNPIN_BACKEND_DRAINING;
    case BackendRow::State::kDown:
      return UNPIN_BACKEND_DOWN;
  }
  return UNPIN_BACKEND_DOWN;
}

BackendRow::State FromAbi(__u16 state) {
  if (state == UNPIN_BACKEND_SERVING) return BackendRow::State::kServing;
  return state == UNPIN_BACKEND_DRAINING ? BackendRow::State::kDraining : BackendRow::State::kDown;
}

__u32 FlagsOf(const ServiceRow& row) {
  return (row.snat ? __u32{UNPIN_SERVICE_SNAT} : 0) |
         (row.source_hash ? __u32{UNPIN_SERVICE_SOURCE_HASH} : 0);
}

// A filled Maglev table, not yet anybody's.
absl::StatusOr<UniqueFd> MakeTable(std::span<const BackendId> slots) {
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP);
  const auto count = static_cast<uint32_t>(slots.size());
  UniqueFd table(bpf_map_create(BPF_MAP_TYPE_ARRAY, "maglev_table", sizeof(uint32_t),
                                sizeof(uint32_t), count, &options));
  if (!table.valid()) return ErrnoStatus(errno, "create a Maglev table");
  std::vector<uint32_t> keys(count);
  std::iota(keys.begin(), keys.end(), 0);
  uint32_t written = count;
  if (bpf_map_update_batch(table.get(), keys.data(), slots.data(), &written, nullptr) != 0) {
    return ErrnoStatus(errno, absl::StrCat("fill a Maglev table of ", count, " slots"));
  }
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTables>> KernelTables::Open(const Program& program) {
  const auto& maps = program.data_plane().maps;
  absl::StatusOr<Services> services = Services::Open(maps.services);
  if (!services.ok()) return services.status();
  absl::StatusOr<Backends> backends = Backends::Open(maps.backends);
  if (!backends.ok()) return backends.status();
  absl::StatusOr<Standings> standings = Standings::Open(maps.standings);
  if (!standings.ok()) return standings.status();
  absl::StatusOr<Endpoints> endpoints = Endpoints::Open(maps.endpoints);
  if (!endpoints.ok()) return endpoints.status();
  return std::unique_ptr<KernelTables>(
      new KernelTables(*std::move(services), *std::move(backends), *std::move(standings),
                       *std::move(endpoints), bpf_map__fd(maps.maglev_tables)));
}

absl::StatusOr<std::vector<ServiceRow>> KernelTables::ReadServices() {
  std::vector<ServiceRow> rows;
  const absl::Status status =
      services_.ForEach([&](const unpin_service_key& key, const unpin_service& service) {
        rows.push_back({.id = service.id,
                        .vip = EndpointOf(key.address, key.port),
                        .snat = (service.flags & UNPIN_SERVICE_SNAT) != 0,
                        .source_hash = (service.flags & UNPIN_SERVICE_SOURCE_HASH) != 0,
                        .new_per_second = service.new_per_second});
      });
  if (!status.ok()) return status;
  return rows;
}

absl::StatusOr<std::vector<BackendRow>> KernelTables::ReadBackends() {
  std::vector<BackendRow> rows;
  const absl::Status status = backends_.ForEach([&](uint32_t id, const unpin_backend& backend) {
    if (backend.state == UNPIN_BACKEND_FREE) return;
    rows.push_back({.id = id,
                    .service = backend.service,
                    .endpoint = EndpointOf(backend.address, backend.port),
                    .state = FromAbi(backend.state)});
  });
  if (!status.ok()) return status;
  return rows;
}

absl::Status KernelTables::Expect(const Endpoint& endpoint) {
  absl::StatusOr<unpin_endpoint_filter> filter = endpoints_.Get(0);
  if (!filter.ok()) return filter.status();
  const __be32 address = htonl(endpoint.address.bits);
  const __be16 port = htons(endpoint.port);
  if (has_endpoint(&*filter, address, port)) return absl::OkStatus();
  set_endpoint(&*filter, address, port);
  return endpoints_.Put(0, *filter);
}

absl::Status KernelTables::PutBackend(const BackendRow& row) {
  absl::Status expected = Expect(row.endpoint);
  if (!expected.ok()) return expected;
  return backends_.Put(row.id, {.address = htonl(row.endpoint.address.bits),
                                .port = htons(row.endpoint.port),
                                .state = ToAbi(row.state),
                                .service = row.service,
                                .pad = 0});
}

absl::Status KernelTables::EraseBackend(BackendId id) {
  absl::Status status = standings_.Put(id, unpin_standing{});
  status.Update(backends_.Put(id, unpin_backend{}));
  return status;
}

// The data plane may count down or suspect between the two steps: that is lost until the next time.
absl::Status KernelTables::SetRoom(BackendId id, std::optional<uint32_t> room) {
  absl::StatusOr<unpin_standing> standing = standings_.Get(id);
  if (!standing.ok()) return standing.status();
  standing->is_capped = room.has_value();
  standing->room = room.value_or(0);
  return standings_.Put(id, *standing);
}

absl::Status KernelTables::PutService(const ServiceRow& row, std::span<const BackendId> slots) {
  absl::Status expected = Expect(row.vip);
  if (!expected.ok()) return expected;
  const unpin_service service = {.id = row.id,
                                 .flags = FlagsOf(row),
                                 .slots = static_cast<__u32>(slots.size()),
                                 .new_per_second = row.new_per_second};
  // A packet between the two steps may meet the new table with the old number of slots: a slot beyond the new table is
  // absent and its SYN refused, so a table that shrinks is announced first.
  const absl::StatusOr<unpin_service> before = services_.Get(KeyOf(row.vip));
  if (before.ok() && before->slots > service.slots) {
    absl::Status status = services_.Put(KeyOf(row.vip), service);
    if (!status.ok()) return status;
  }
  if (!slots.empty()) {
    absl::Status status = InstallTable(row.id, slots);
    if (!status.ok()) return status;
  }
  return services_.Put(KeyOf(row.vip), service);
}

absl::Status KernelTables::InstallTable(ServiceId id, std::span<const BackendId> slots) {
  absl::StatusOr<UniqueFd> table = MakeTable(slots);
  if (!table.ok()) return table.status();
  const int fd = table->get();
  if (bpf_map_update_elem(maglev_tables_fd_, &id, &fd, BPF_ANY) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("install the Maglev table of service ", id));
}

absl::Status KernelTables::EraseService(const ServiceRow& row) {
  absl::Status status = services_.Erase(KeyOf(row.vip));
  if (!status.ok()) return status;
  if (bpf_map_delete_elem(maglev_tables_fd_, &row.id) == 0 || errno == ENOENT)
    return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("remove the Maglev table of service ", row.id));
}

}  // namespace unpin
