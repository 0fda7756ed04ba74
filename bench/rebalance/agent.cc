// SPDX-License-Identifier: Apache-2.0
#include "bench/rebalance/agent.h"

#include <time.h>

#include <algorithm>
#include <cmath>

namespace unpin::sim {
namespace {

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

double CpuMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace

Agent::Agent(Fleet& fleet, const AgentSettings& settings)
    : fleet_(fleet),
      settings_(settings),
      incarnation_(fleet.load.size()),
      last_moved_s_(fleet.load.size(), -1e9f) {}

ConnectionKey Agent::KeyOf(uint32_t connection) const {
  return {.client = {.address = {0x0a000000 + connection}, .port = incarnation_[connection]},
          .vip = {.address = {0xc6336401}, .port = 443}};
}

// What has become of the moves since the last tick.
void Agent::Reconnect() {
  absl::erase_if(under_way_, [&](const auto& entry) {
    const auto& [connection, way] = entry;
    if (way.due > now_) return false;
    Move move = {.connection = KeyOf(connection), .acknowledged = way.sent};
    move.reason = MoveReason::kRebalance;
    if (fleet_.client[connection] == Client::kRefuses) {
      move.state = MoveState::kExpired;
    } else {
      ++incarnation_[connection];
      const bool met = fleet_.client[connection] == Client::kObeys && fleet_.serving[way.to];
      move.state = met ? MoveState::kReconnected : MoveState::kExpired;
      if (met) {
        fleet_.backend[connection] = way.to;
        move.new_client = KeyOf(connection).client;
      } else {
        fleet_.Steer(connection);
      }
    }
    cool_downs_.OnEnded(move, settings_.cool_down, now_);
    return true;
  });
}

void Agent::Measure(std::vector<PlanBackend>& backends, std::vector<PlanConnection>& connections) {
  index_.assign(fleet_.serving.size(), UINT32_MAX);
  backend_of_index_.clear();
  for (uint32_t i = 0; i < fleet_.serving.size(); ++i) {
    if (!fleet_.serving[i]) continue;
    index_[i] = static_cast<uint32_t>(backends.size());
    backends.push_back({.id = i + 1, .weight = 1});
    backend_of_index_.push_back(i);
  }
  if (backends.empty()) return;
  connections.reserve(fleet_.load.size());
  uint64_t bits = fleet_.random() | 1;
  for (uint32_t i = 0; i < fleet_.load.size(); ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    const auto even = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24);
    const float error = static_cast<float>(settings_.noise) * (2 * even - 1);
    connections.push_back({.backend = index_[fleet_.backend[i]],
                           .load = fleet_.load[i] * (1 + error),
                           .movable = true});
  }
  for (const auto& [connection, way] : under_way_) {
    connections[connection].movable = false;
    if (index_[way.to] != UINT32_MAX) connections[connection].backend = index_[way.to];
  }
}

void Agent::Start(const PlannedMove& move, uint32_t to) {
  const uint32_t c = move.connection;
  const double now_s = std::chrono::duration<double>(now_.time_since_epoch()).count();
  const double rest = std::chrono::duration<double>(settings_.cool_down).count();
  account_.moved_too_soon += now_s - last_moved_s_[c] < rest;
  last_moved_s_[c] = static_cast<float>(now_s);
  const double wait = fleet_.client[c] == Client::kRefuses
                          ? 30
                          : -std::log(1 - fleet_.Random()) * settings_.reconnect;
  under_way_[c] = {.to = to, .sent = now_, .due = now_ + Seconds(wait)};
}

// The mean standard error of a backend's load, relative: what its connections' errors are when they have evened out.
double Agent::NoiseOf(size_t backends, const std::vector<PlanConnection>& connections) const {
  double noise = 0;
  std::vector<double> sum(backends), squares(backends);
  for (const PlanConnection& c : connections) {
    sum[c.backend] += c.load;
    squares[c.backend] += static_cast<double>(c.load) * c.load;
  }
  for (size_t i = 0; i < backends; ++i) noise += sum[i] > 0 ? std::sqrt(squares[i]) / sum[i] : 0;
  return noise * settings_.noise / std::sqrt(3.0) / static_cast<double>(backends);
}

void Agent::Tick() {
  now_ += Seconds(settings_.tick_s);
  Reconnect();
  std::vector<PlanBackend> backends;
  std::vector<PlanConnection> connections;
  Measure(backends, connections);
  cool_downs_.Forget(now_);
  if (backends.size() < 2) return;
  const double noise = NoiseOf(backends.size(), connections);
  significant_ = SignificantNoise(noise, backends.size());
  const double imbalance = ImbalanceOf(backends, connections);
  // The gate doubles what it is told.
  if (gate_.Observe(imbalance, 1 + settings_.tolerance, significant_ / 2, settings_.ticks))
    PlanAndStart(backends, connections, noise);
}

void Agent::PlanAndStart(const std::vector<PlanBackend>& backends,
                         std::vector<PlanConnection>& connections, double noise) {
  for (uint32_t i = 0; i < connections.size(); ++i)
    connections[i].movable = connections[i].movable && cool_downs_.MayMove(KeyOf(i), now_);
  const uint32_t budget = gate_.Budget(settings_.moves_per_second, now_);
  const double begun = CpuMs();
  const Plan plan =
      PlanMoves(backends, connections,
                {.tolerance = settings_.tolerance, .max_moves = budget, .noise = noise});
  account_.plan_ms.push_back(CpuMs() - begun);
  account_.worst_plan_ms = std::max(account_.worst_plan_ms, account_.plan_ms.back());
  if (plan.moves.empty()) return;
  ++account_.plans;
  account_.moves += plan.moves.size();
  account_.bound += FewestPossible(backends, connections, 1 + settings_.tolerance, significant_);
  for (const PlannedMove& move : plan.moves) Start(move, backend_of_index_[move.to]);
  gate_.Spend(static_cast<uint32_t>(plan.moves.size()));
}

double Agent::Imbalance() const {
  std::vector<uint32_t> index(fleet_.serving.size());
  std::vector<PlanBackend> backends;
  for (uint32_t i = 0; i < index.size(); ++i) {
    index[i] = static_cast<uint32_t>(backends.size());
    if (fleet_.serving[i]) backends.push_back({.id = i + 1, .weight = 1});
  }
  std::vector<PlanConnection> connections;
  connections.reserve(fleet_.load.size());
  if (backends.empty()) return 0;
  for (uint32_t i = 0; i < fleet_.load.size(); ++i) {
    const auto way = under_way_.find(i);
    const uint32_t at = way != under_way_.end() && fleet_.client[i] == Client::kObeys &&
                                fleet_.serving[way->second.to]
                            ? way->second.to
                            : fleet_.backend[i];
    connections.push_back({.backend = index[at], .load = fleet_.load[i]});
  }
  return ImbalanceOf(backends, connections);
}

}  // namespace unpin::sim
