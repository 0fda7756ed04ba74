// SPDX-License-Identifier: Apache-2.0
#include "tests/testkit/data_plane.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bpf/endpoint_filter.h"
#include "bpf/goaway.skel.h"
#include "bpf/unpin.skel.h"

namespace unpin::testkit {
namespace {

template <typename Key, typename Value>
absl::Status Put(const bpf_map* map, const Key& key, const Value& value) {
  if (bpf_map__key_size(map) != sizeof(Key) || bpf_map__value_size(map) != sizeof(Value)) {
    return absl::InternalError(
        absl::StrCat("map ", bpf_map__name(map), ": layout differs from abi.h"));
  }
  if (bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("put into map ", bpf_map__name(map)));
}

template <typename Key>
absl::Status Erase(const bpf_map* map, const Key& key) {
  if (bpf_map_delete_elem(bpf_map__fd(map), &key) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("erase from map ", bpf_map__name(map)));
}

template <typename Value, typename Key>
absl::StatusOr<Value> Get(const bpf_map* map, const Key& key, uint64_t flags = 0) {
  if (bpf_map__key_size(map) != sizeof(Key) || bpf_map__value_size(map) != sizeof(Value)) {
    return absl::InternalError(
        absl::StrCat("map ", bpf_map__name(map), ": layout differs from abi.h"));
  }
  Value value = {};
  if (bpf_map_lookup_elem_flags(bpf_map__fd(map), &key, &value, flags) == 0) return value;
  return absl::ErrnoToStatus(errno, absl::StrCat("look up in map ", bpf_map__name(map)));
}

// Runs one of the agent's programs: its frame is the argument struct, read and written.
template <typename Args>
absl::StatusOr<Args> Call(const bpf_program* program, Args args) {
  bpf_test_run_opts opts = {};
  opts.sz = sizeof(opts);
  opts.data_in = &args;
  opts.data_size_in = sizeof(args);
  opts.data_out = &args;
  opts.data_size_out = sizeof(args);
  if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("run ", bpf_program__name(program)));
  }
  return args;
}

template <typename Record>
int Append(void* records, void* data, size_t size) {
  Record record = {};
  std::memcpy(&record, data, std::min(size, sizeof(record)));
  static_cast<std::vector<Record>*>(records)->push_back(record);
  return 0;
}

void ForgetPins(const bpf_object* object) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) bpf_map__set_pin_path(map, nullptr);
}

absl::Status ShareMaps(const bpf_object* from, const bpf_object* to) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, to) {
    const bpf_map* shared = bpf_object__find_map_by_name(from, bpf_map__name(map));
    if (shared == nullptr || bpf_map__is_internal(map)) continue;
    if (bpf_map__reuse_fd(map, bpf_map__fd(shared)) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("share map ", bpf_map__name(map)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataPlane>> DataPlane::Load(const DataPlaneSizes& sizes) {
  std::unique_ptr<DataPlane> plane(new DataPlane);
  absl::Status status = plane->LoadObjects(sizes);
  if (status.ok()) status = plane->OpenRings();
  if (!status.ok()) return status;
  return plane;
}

absl::Status DataPlane::LoadObjects(const DataPlaneSizes& sizes) {
  ingress_ = unpin_skel__open();
  goaway_ = goaway_skel__open();
  if (ingress_ == nullptr || goaway_ == nullptr) {
    return absl::ErrnoToStatus(errno, "open the BPF objects");
  }
  ForgetPins(ingress_->obj);
  ForgetPins(goaway_->obj);
  bpf_map__set_max_entries(ingress_->maps.flows, sizes.flows);
  bpf_map__set_max_entries(ingress_->maps.half_open, sizes.half_open);
  bpf_map__set_max_entries(ingress_->maps.pins, sizes.pinned_clients);
  bpf_map__set_max_entries(ingress_->maps.captures, 1 << 20);
  if (unpin_skel__load(ingress_) != 0) {
    return absl::ErrnoToStatus(errno, "load unpin.bpf.o (see the verifier's log above)");
  }
  const absl::Status shared = ShareMaps(ingress_->obj, goaway_->obj);
  if (!shared.ok()) return shared;
  if (goaway_skel__load(goaway_) != 0) {
    return absl::ErrnoToStatus(errno, "load goaway.bpf.o (see the verifier's log above)");
  }
  return absl::OkStatus();
}

absl::Status DataPlane::OpenRings() {
  event_ring_ =
      ring_buffer__new(bpf_map__fd(ingress_->maps.events), Append<unpin_event>, &events_, nullptr);
  capture_ring_ = ring_buffer__new(bpf_map__fd(ingress_->maps.captures), Append<unpin_capture>,
                                   &captures_, nullptr);
  if (event_ring_ != nullptr && capture_ring_ != nullptr) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "open the ring buffers");
}

DataPlane::~DataPlane() {
  ring_buffer__free(event_ring_);
  ring_buffer__free(capture_ring_);
  goaway_skel__destroy(goaway_);
  unpin_skel__destroy(ingress_);
}

absl::StatusOr<Outcome> DataPlane::Run(const Bytes& frame, uint32_t ifindex) {
  absl::StatusOr<std::vector<uint64_t>> before = VerdictCounts();
  if (!before.ok()) return before.status();

  Bytes out(frame.size() + 256);
  xdp_md context = {};
  context.data_end = frame.size();
  context.ingress_ifindex = ifindex;
  bpf_test_run_opts opts = {};
  opts.sz = sizeof(opts);
  opts.data_in = frame.data();
  opts.data_size_in = frame.size();
  opts.data_out = out.data();
  opts.data_size_out = out.size();
  opts.ctx_in = &context;
  opts.ctx_size_in = sizeof(context);
  if (bpf_prog_test_run_opts(bpf_program__fd(ingress_->progs.unpin_ingress), &opts) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("run unpin_ingress on ", frame.size(), " bytes"));
  }
  out.resize(opts.data_size_out);

  absl::StatusOr<std::vector<uint64_t>> after = VerdictCounts();
  if (!after.ok()) return after.status();
  Outcome outcome{.action = opts.retval, .frame = std::move(out), .counted = {}};
  for (uint32_t verdict = 0; verdict < UNPIN_VERDICT_COUNT; ++verdict) {
    outcome.counted.insert(outcome.counted.end(), (*after)[verdict] - (*before)[verdict], verdict);
  }
  return outcome;
}

absl::StatusOr<std::vector<uint64_t>> DataPlane::VerdictCounts() const {
  std::vector<uint64_t> per_cpu(libbpf_num_possible_cpus());
  std::vector<uint64_t> totals;
  for (uint32_t verdict = 0; verdict < UNPIN_VERDICT_COUNT; ++verdict) {
    if (bpf_map_lookup_elem(bpf_map__fd(ingress_->maps.verdict_counts), &verdict, per_cpu.data()) !=
        0) {
      return absl::ErrnoToStatus(errno, "read the verdict counters");
    }
    uint64_t total = 0;
    for (uint64_t count : per_cpu) total += count;
    totals.push_back(total);
  }
  return totals;
}

absl::Status DataPlane::Expect(__be32 address, __be16 port) {
  absl::StatusOr<unpin_endpoint_filter> filter =
      Get<unpin_endpoint_filter>(ingress_->maps.endpoints, uint32_t{0});
  if (!filter.ok()) return filter.status();
  set_endpoint(&*filter, address, port);
  return Put(ingress_->maps.endpoints, uint32_t{0}, *filter);
}

absl::Status DataPlane::PutService(const unpin_service_key& key, const unpin_service& service) {
  const absl::Status expected = Expect(key.address, key.port);
  return expected.ok() ? Put(ingress_->maps.services, key, service) : expected;
}

absl::Status DataPlane::EraseService(const unpin_service_key& key) {
  return Erase(ingress_->maps.services, key);
}

absl::Status DataPlane::PutBackend(uint32_t id, const unpin_backend& backend) {
  const absl::Status expected = Expect(backend.address, backend.port);
  return expected.ok() ? Put(ingress_->maps.backends, id, backend) : expected;
}

absl::Status DataPlane::PutStanding(uint32_t id, const unpin_standing& standing) {
  return Put(ingress_->maps.standings, id, standing);
}

absl::StatusOr<unpin_standing> DataPlane::Standing(uint32_t id) const {
  return Get<unpin_standing>(ingress_->maps.standings, id);
}

absl::Status DataPlane::PutTable(uint32_t service, const std::vector<uint32_t>& slots) {
  bpf_map_create_opts opts = {};
  opts.sz = sizeof(opts);
  opts.map_flags = BPF_F_INNER_MAP;
  const int table = bpf_map_create(BPF_MAP_TYPE_ARRAY, "maglev_table", sizeof(uint32_t),
                                   sizeof(uint32_t), slots.size(), &opts);
  if (table < 0) return absl::ErrnoToStatus(errno, "create a Maglev table");
  absl::Status status;
  for (uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (bpf_map_update_elem(table, &slot, &slots[slot], BPF_ANY) != 0) {
      status.Update(absl::ErrnoToStatus(errno, absl::StrCat("fill slot ", slot)));
    }
  }
  if (status.ok()) status = Put(ingress_->maps.maglev_tables, service, table);
  close(table);
  return status;
}

absl::Status DataPlane::PutControls(const unpin_controls& controls) {
  return Put(ingress_->maps.controls, uint32_t{0}, controls);
}

absl::StatusOr<unpin_flow> DataPlane::Flow(const unpin_flow_key& key) const {
  return Get<unpin_flow>(ingress_->maps.flows, key, BPF_F_LOCK);
}

absl::Status DataPlane::PutFlow(const unpin_flow_key& key, const unpin_flow& flow) {
  return Put(ingress_->maps.flows, key, flow);
}

absl::StatusOr<unpin_half_open> DataPlane::HalfOpen(const unpin_flow_key& key) const {
  return Get<unpin_half_open>(ingress_->maps.half_open, key);
}

absl::Status DataPlane::PutHalfOpen(const unpin_flow_key& key, const unpin_half_open& entry) {
  return Put(ingress_->maps.half_open, key, entry);
}

absl::Status DataPlane::EraseHalfOpen(const unpin_flow_key& key) {
  return Erase(ingress_->maps.half_open, key);
}

absl::StatusOr<unpin_client_pins> DataPlane::Pins(const unpin_pin_key& key) const {
  return Get<unpin_client_pins>(ingress_->maps.pins, key, BPF_F_LOCK);
}

absl::Status DataPlane::Clear() {
  TakeEvents();
  TakeCaptures();
  const auto& maps = ingress_->maps;
  for (const bpf_map* map : {maps.services, maps.flows, maps.half_open, maps.pins}) {
    Bytes key(bpf_map__key_size(map));
    while (bpf_map_get_next_key(bpf_map__fd(map), nullptr, key.data()) == 0) {
      if (bpf_map_delete_elem(bpf_map__fd(map), key.data()) == 0) continue;
      return absl::ErrnoToStatus(errno, absl::StrCat("clear map ", bpf_map__name(map)));
    }
  }
  return absl::OkStatus();
}

absl::Status DataPlane::EmptyFlows() {
  constexpr uint32_t kBatch = 8192;
  for (const bpf_map* map : {ingress_->maps.flows, ingress_->maps.half_open}) {
    Bytes keys(kBatch * bpf_map__key_size(map)), values(kBatch * bpf_map__value_size(map));
    uint32_t next = 0;
    for (uint32_t* at = nullptr;; at = &next) {
      uint32_t count = kBatch;
      if (bpf_map_lookup_and_delete_batch(bpf_map__fd(map), at, &next, keys.data(), values.data(), &count,
                                          nullptr) == 0) {
        continue;
      }
      if (errno == ENOENT) break;
      return absl::ErrnoToStatus(errno, absl::StrCat("empty map ", bpf_map__name(map)));
    }
  }
  return absl::OkStatus();
}

int DataPlane::ingress_fd() const { return bpf_program__fd(ingress_->progs.unpin_ingress); }

int DataPlane::map_fd(const char* name) const {
  return bpf_object__find_map_fd_by_name(ingress_->obj, name);
}

size_t DataPlane::FlowCount() const {
  size_t count = 0;
  unpin_flow_key key;
  const unpin_flow_key* previous = nullptr;
  while (bpf_map_get_next_key(bpf_map__fd(ingress_->maps.flows), previous, &key) == 0) {
    previous = &key;
    ++count;
  }
  return count;
}

absl::StatusOr<unpin_arm_args> DataPlane::ArmGoaway(unpin_arm_args args) {
  return Call(goaway_->progs.arm_goaway, args);
}
absl::StatusOr<unpin_arm_args> DataPlane::DisarmGoaway(unpin_arm_args args) {
  return Call(goaway_->progs.disarm_goaway, args);
}
absl::StatusOr<unpin_arm_args> DataPlane::AbandonConnection(unpin_arm_args args) {
  return Call(goaway_->progs.abandon_connection, args);
}
absl::StatusOr<unpin_restore_args> DataPlane::RestoreFollower(unpin_restore_args args) {
  return Call(goaway_->progs.restore_follower, args);
}
absl::StatusOr<unpin_add_pin_args> DataPlane::AddPin(unpin_add_pin_args args) {
  return Call(goaway_->progs.add_pin, args);
}
absl::StatusOr<unpin_add_pin_args> DataPlane::RemovePin(unpin_add_pin_args args) {
  return Call(goaway_->progs.remove_pin, args);
}

std::vector<unpin_event> DataPlane::TakeEvents() {
  ring_buffer__consume(event_ring_);
  return std::exchange(events_, {});
}

std::vector<unpin_capture> DataPlane::TakeCaptures() {
  ring_buffer__consume(capture_ring_);
  return std::exchange(captures_, {});
}

}  // namespace unpin::testkit
