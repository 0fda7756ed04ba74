// SPDX-License-Identifier: Apache-2.0
// The agent of the simulation: measures with noise, decides with the product's own policy, and learns what became of it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/rebalance/fleet.h"
#include "userspace/base/clock.h"
#include "userspace/policy/cool_downs.h"
#include "userspace/policy/plan_moves.h"
#include "userspace/policy/rebalance_gate.h"

namespace unpin::sim {

struct AgentSettings {
  double tolerance = 0.05;
  uint32_t ticks = 2;  // imbalanced for so many before anything is moved
  uint32_t moves_per_second = 100'000;
  double noise = 0.10;     // each connection's load is measured so wrongly, evenly spread
  double reconnect = 0.5;  // seconds, mean
  double tick_s = 5;
  Duration cool_down = std::chrono::seconds(30);
};

struct Account {
  uint64_t moves = 0;
  uint64_t bound = 0;  // the fewest moves that could do, plan by plan
  uint64_t plans = 0;
  uint64_t moved_too_soon = 0;  // within the cool-down
  double worst_plan_ms = 0;     // CPU time, of the whole plan
  std::vector<double> plan_ms;
};

class Agent {
 public:
  Agent(Fleet& fleet, const AgentSettings& settings);

  void Tick();
  void Hurry() { gate_.Hurry(); }
  // So much over the limit is taken for noise, as of the last tick.
  double significant() const { return significant_; }
  // By the true loads, elephants counted as the planner counts them.
  double Imbalance() const;
  const Account& account() const { return account_; }

 private:
  struct UnderWay {
    uint32_t to = 0;
    TimePoint sent, due;
  };

  ConnectionKey KeyOf(uint32_t connection) const;
  void Reconnect();
  void Measure(std::vector<PlanBackend>& backends, std::vector<PlanConnection>& connections);
  double NoiseOf(size_t backends, const std::vector<PlanConnection>& connections) const;
  void PlanAndStart(const std::vector<PlanBackend>& backends,
                    std::vector<PlanConnection>& connections, double noise);
  void Start(const PlannedMove& move, uint32_t to);

  Fleet& fleet_;
  const AgentSettings settings_;
  RebalanceGate gate_;
  CoolDowns cool_downs_;
  absl::flat_hash_map<uint32_t, UnderWay> under_way_;
  std::vector<uint16_t> incarnation_;  // a reconnect comes from a port of its own
  std::vector<float> last_moved_s_;
  std::vector<uint32_t> index_;  // backend -> index in the plan
  std::vector<uint32_t> backend_of_index_;
  TimePoint now_{std::chrono::hours(1)};
  double significant_ = 0;
  Account account_;
};

// Each backend that is over `goal` of its share by more than `ignored` must lose that excess: at least so many of its
// heaviest, however they are placed.
uint64_t FewestPossible(const std::vector<PlanBackend>& backends,
                        const std::vector<PlanConnection>& connections, double goal,
                        double ignored);

}  // namespace unpin::sim
