// SPDX-License-Identifier: Apache-2.0
#include "bench/cost/harness.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctime>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace unpin::bench {
namespace {

constexpr uint32_t kFlowRoom = 1 << 20;
constexpr uint32_t kFloorPackets = 200000;
constexpr uint32_t kService = 3;
constexpr uint32_t kBackendId = 7;

double ThreadNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

cost_setup SetupOf(const Row& row, uint32_t flows) {
  cost_setup setup = {};
  for (size_t i = 0; i < row.frames.size(); ++i) {
    std::memcpy(&setup.heads[i], row.frames[i].data(), std::min<size_t>(row.frames[i].size(), 66));
  }
  setup.frame = row.frames[0].size();
  setup.first_address = kFirstClient;
  setup.flow_mask = (row.has_endless_flows ? 1u << 24 : flows) - 1;
  setup.seq = row.seq;
  setup.seq_step = row.seq_step;
  setup.varies_source = row.varies_source;
  return setup;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Harness>> Harness::Make() {
  absl::StatusOr<testkit::PrivateNetwork> network = testkit::EnterPrivateNetwork();
  if (!network.ok()) return network.status();
  absl::Status status = testkit::Ip("route add 11.0.0.0/8 via 10.0.0.2 dev bt-c\n");
  if (!status.ok()) return status;

  std::unique_ptr<Harness> harness(new Harness);
  harness->network_ = *network;
  absl::StatusOr<std::unique_ptr<testkit::DataPlane>> plane =
      testkit::DataPlane::Load({.flows = kFlowRoom, .half_open = UNPIN_DEFAULT_HALF_OPEN});
  if (!plane.ok()) return plane.status();
  harness->plane_ = *std::move(plane);
  status = harness->SetScene();
  if (status.ok()) status = harness->LoadWrappers();
  if (!status.ok()) return status;
  return harness;
}

Harness::~Harness() { packet_cost_skel__destroy(wrappers_); }

absl::Status Harness::SetScene() {
  unpin_controls controls = {.route_generation = 1,
                             .event_mask = ~0u,
                             .unknown_tcp = UNPIN_UNKNOWN_RESET,
                             .snat_port_min = 1024,
                             .snat_port_max = 65535,
                             .snat_count = UNPIN_MAX_SNAT_ADDRESSES,
                             .snat_addresses = {}};
  for (uint32_t i = 0; i < UNPIN_MAX_SNAT_ADDRESSES; ++i) {
    controls.snat_addresses[i] = htonl(testkit::Quad("10.1.255.1") + i);
  }
  absl::Status status = plane_->PutControls(controls);
  status.Update(plane_->PutBackend(kBackendId, {.address = htonl(testkit::Quad(kBackend)),
                                                .port = htons(kBackendPort),
                                                .state = UNPIN_BACKEND_SERVING,
                                                .service = kService,
                                                .pad = 0}));
  status.Update(plane_->PutTable(kService, std::vector<uint32_t>(UNPIN_MAGLEV_SLOTS, kBackendId)));
  status.Update(plane_->PutService({htonl(testkit::Quad(kVip)), htons(kVipPort), IPPROTO_TCP, 0},
                                   {.id = kService,
                                    .flags = UNPIN_SERVICE_SNAT,
                                    .slots = UNPIN_MAGLEV_SLOTS,
                                    .new_per_second = 0}));
  return status;
}

absl::Status Harness::LoadWrappers() {
  wrappers_ = packet_cost_skel__open();
  if (wrappers_ == nullptr) return absl::ErrnoToStatus(errno, "open packet_cost.bpf.o");
  if (bpf_map__reuse_fd(wrappers_->maps.flows, plane_->map_fd("flows")) != 0 ||
      packet_cost_skel__load(wrappers_) != 0) {
    return absl::ErrnoToStatus(errno, "load packet_cost.bpf.o");
  }
  const int programs[] = {bpf_program__fd(wrappers_->progs.floor_tx),
                          bpf_program__fd(wrappers_->progs.floor_lookup), plane_->ingress_fd()};
  for (uint32_t target = 0; target < std::size(programs); ++target) {
    if (bpf_map_update_elem(bpf_map__fd(wrappers_->maps.targets), &target, &programs[target],
                            BPF_ANY) != 0) {
      return absl::ErrnoToStatus(errno, "set a target of the wrapper");
    }
  }
  return absl::OkStatus();
}

int Harness::WrapperOf(Target target) const {
  const auto& programs = wrappers_->progs;
  const bpf_program* const wrappers[] = {programs.wrap_floor, programs.wrap_lookup,
                                         programs.wrap_product, programs.wrap_handshake};
  return bpf_program__fd(wrappers[static_cast<int>(target)]);
}

absl::Status Harness::Populate(const Row& row, uint32_t flows) {
  absl::Status status = plane_->EmptyFlows();
  if (!status.ok() || !row.flow) return status;
  constexpr uint32_t kBatch = 4096;
  std::vector<unpin_flow_key> keys;
  std::vector<unpin_flow> values;
  for (uint32_t first = 0; first < flows; first += kBatch) {
    keys.clear();
    values.clear();
    for (uint32_t i = first; i < std::min(flows, first + kBatch); ++i) {
      const FlowEntry entry = row.flow(i);
      keys.push_back(entry.key);
      values.push_back(entry.flow);
    }
    uint32_t count = keys.size();
    if (bpf_map_update_batch(plane_->map_fd("flows"), keys.data(), values.data(), &count,
                             nullptr) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("fill the flow table with ", flows));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Harness::Run(int program, const Row& row, uint32_t packets) {
  xdp_md context = {};
  context.data_end = row.frames[0].size();
  context.ingress_ifindex = row.ifindex;
  bpf_test_run_opts opts = {};
  opts.sz = sizeof(opts);
  opts.data_in = row.frames[0].data();
  opts.data_size_in = row.frames[0].size();
  opts.ctx_in = &context;
  opts.ctx_size_in = sizeof(context);
  opts.repeat = static_cast<int>(packets);
  const double start = ThreadNanoseconds();
  if (bpf_prog_test_run_opts(program, &opts) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("run packets of '", row.name, "'"));
  }
  return ThreadNanoseconds() - start;
}

// What a call costs however many packets it runs; the least of a few.
absl::Status Harness::MeasureCall(const Row& row) {
  call_ns_ = 1e9;
  for (int i = 0; i < 10; ++i) {
    const absl::StatusOr<double> ns = Run(WrapperOf(Target::kFloor), row, 1);
    if (!ns.ok()) return ns.status();
    call_ns_ = std::min(call_ns_, *ns);
  }
  return absl::OkStatus();
}

absl::Status Harness::Round(const Row& row, const Effort& effort, Measured& measured) {
  cost_setup& setup = wrappers_->bss->setup;
  const cost_setup before = setup;
  absl::StatusOr<double> floor = Run(WrapperOf(Target::kFloor), row, kFloorPackets);
  if (!floor.ok()) return floor.status();
  setup = before;

  const absl::StatusOr<std::vector<uint64_t>> counts = plane_->VerdictCounts();
  const absl::StatusOr<double> ns = Run(WrapperOf(row.target), row, effort.packets);
  if (!ns.ok()) return ns.status();
  const absl::StatusOr<std::vector<uint64_t>> after = plane_->VerdictCounts();
  if (!counts.ok() || !after.ok()) return absl::InternalError("read the verdict counters");
  for (const uint32_t verdict : row.verdicts) {
    const uint64_t met = (*after)[verdict] - (*counts)[verdict];
    if (met == effort.packets / row.verdicts.size()) continue;
    return absl::InternalError(absl::StrCat("row '", row.name, "': ", met, " of ", effort.packets,
                                            " packets met ",
                                            plane_->NameOf("unpin_verdict", verdict)));
  }
  measured.floor.push_back((*floor - call_ns_) / kFloorPackets);
  measured.ns.push_back((*ns - call_ns_) / effort.packets);
  return absl::OkStatus();
}

absl::StatusOr<Measured> Harness::Measure(const Row& row, uint32_t flows, const Effort& effort) {
  absl::Status status = Populate(row, flows);
  if (status.ok()) status = MeasureCall(row);
  wrappers_->bss->setup = SetupOf(row, flows);
  Measured measured;
  Effort each = effort;
  each.packets -= each.packets % row.frames.size();
  if (row.target == Target::kHandshake)
    each.packets /= 5;  // the events of a round must fit into their ring
  each.packets -= each.packets % row.frames.size();
  for (int round = 0; status.ok() && round < effort.rounds; ++round) {
    status = Round(row, each, measured);
    if (row.has_endless_flows) status.Update(plane_->EmptyFlows());
    plane_->TakeEvents();
  }
  if (!status.ok()) return status;
  return measured;
}

}  // namespace unpin::bench
