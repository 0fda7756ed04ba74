// SPDX-License-Identifier: Apache-2.0
// Runs a row's packets through the data plane by BPF_PROG_TEST_RUN, in turn with the floor, and checks that they met the
// verdict the row is about.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/cost/setup.h"
#include "bench/cost/rows.h"
#include "bench/cost/packet_cost.skel.h"
#include "tests/testkit/data_plane.h"

namespace unpin::bench {

struct Effort {
  int rounds = 25;
  uint32_t packets = 200000;  // a round
};

struct Measured {
  std::vector<double> ns;     // a packet, one a round
  std::vector<double> floor;  // likewise, taken just before
};

class Harness {
 public:
  // Moves the calling thread into a network of its own. Needs root.
  static absl::StatusOr<std::unique_ptr<Harness>> Make();
  ~Harness();

  const testkit::PrivateNetwork& network() const { return network_; }
  absl::StatusOr<Measured> Measure(const Row& row, uint32_t flows, const Effort& effort);

 private:
  Harness() = default;
  absl::Status SetScene();
  absl::Status LoadWrappers();
  absl::Status Populate(const Row& row, uint32_t flows);
  absl::Status MeasureCall(const Row& row);
  absl::Status Round(const Row& row, const Effort& effort, Measured& measured);
  // Nanoseconds of thread CPU time.
  absl::StatusOr<double> Run(int program, const Row& row, uint32_t packets);
  int WrapperOf(Target target) const;

  testkit::PrivateNetwork network_;
  std::unique_ptr<testkit::DataPlane> plane_;
  packet_cost_skel* wrappers_ = nullptr;
  double call_ns_ = 0;
};

}  // namespace unpin::bench
