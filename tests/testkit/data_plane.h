// SPDX-License-Identifier: Apache-2.0
// The real BPF objects, loaded with maps of their own and run frame by frame (BPF_PROG_TEST_RUN). Nothing is pinned
// or attached; everything goes away with the object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "tests/testkit/packet.h"

struct bpf_map;
struct bpf_program;
struct ring_buffer;
struct unpin_skel;
struct goaway_skel;

namespace unpin::testkit {

struct Outcome {
  uint32_t action = 0;            // enum xdp_action
  Bytes frame;                    // as it would leave
  std::vector<uint32_t> counted;  // the verdicts whose counter rose, once per increment
};

// Sizes small enough that a fresh set of maps costs milliseconds.
struct DataPlaneSizes {
  uint32_t flows = 1024;
  uint32_t half_open = 1024;
  uint32_t pinned_clients = 64;
};

class DataPlane {
 public:
  static absl::StatusOr<std::unique_ptr<DataPlane>> Load(const DataPlaneSizes& sizes = {});
  ~DataPlane();

  // One frame arriving on the interface.
  absl::StatusOr<Outcome> Run(const Bytes& frame, uint32_t ifindex);

  absl::Status PutService(const unpin_service_key& key, const unpin_service& service);
  absl::Status EraseService(const unpin_service_key& key);
  absl::Status PutBackend(uint32_t id, const unpin_backend& backend);
  absl::Status PutStanding(uint32_t id, const unpin_standing& standing);
  absl::StatusOr<unpin_standing> Standing(uint32_t id) const;
  absl::Status PutTable(uint32_t service, const std::vector<uint32_t>& slots);
  absl::Status PutControls(const unpin_controls& controls);

  absl::StatusOr<unpin_flow> Flow(const unpin_flow_key& key) const;
  absl::Status PutFlow(const unpin_flow_key& key, const unpin_flow& flow);
  absl::StatusOr<unpin_half_open> HalfOpen(const unpin_flow_key& key) const;
  absl::Status PutHalfOpen(const unpin_flow_key& key, const unpin_half_open& entry);
  absl::Status EraseHalfOpen(const unpin_flow_key& key);
  absl::StatusOr<unpin_client_pins> Pins(const unpin_pin_key& key) const;
  size_t FlowCount() const;

  // As freshly loaded: no service, flow, half-open connection or pin; the rings are empty. Backends, tables and
  // controls stay.
  absl::Status Clear();
  absl::Status EmptyFlows();  // and half-open connections, however many

  // For those who run the programs in their own way (bench/).
  int ingress_fd() const;
  int map_fd(const char* name) const;
  absl::StatusOr<std::vector<uint64_t>> VerdictCounts() const;  // one sum over all CPUs a verdict

  absl::StatusOr<unpin_arm_args> ArmGoaway(unpin_arm_args args);
  absl::StatusOr<unpin_arm_args> DisarmGoaway(unpin_arm_args args);
  absl::StatusOr<unpin_arm_args> AbandonConnection(unpin_arm_args args);
  absl::StatusOr<unpin_restore_args> RestoreFollower(unpin_restore_args args);
  absl::StatusOr<unpin_add_pin_args> AddPin(unpin_add_pin_args args);
  absl::StatusOr<unpin_add_pin_args> RemovePin(unpin_add_pin_args args);

  // What has been sent since the last call.
  std::vector<unpin_event> TakeEvents();
  std::vector<unpin_capture> TakeCaptures();

  // What the kernel's verifier went through to accept each program, by name.
  absl::StatusOr<std::map<std::string, uint32_t>> VerifiedInstructions() const;

  // Names as the objects' own type information spells them: "UNPIN_FORWARD_C2S".
  std::string NameOf(const char* enum_name, uint32_t value) const;

 private:
  DataPlane() = default;
  absl::Status LoadObjects(const DataPlaneSizes& sizes);
  absl::Status OpenRings();
  absl::Status Expect(__be32 address, __be16 port);

  unpin_skel* ingress_ = nullptr;
  goaway_skel* goaway_ = nullptr;
  ring_buffer* event_ring_ = nullptr;
  ring_buffer* capture_ring_ = nullptr;
  std::vector<unpin_event> events_;
  std::vector<unpin_capture> captures_;
};

}  // namespace unpin::testkit
