// SPDX-License-Identifier: Apache-2.0
// The controller's deciding: from loads to a plan to moves, for each service.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "userspace/agent/controller.h"

namespace unpin {
namespace {

// How often loads are looked at; never more than one part in kCostShare of the time is spent on it.
constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr int kCostShare = 20;
// Changes of backends often come in twos and threes: a plan waits for the last, but not longer than kLongestSettle.
constexpr Duration kSettle = std::chrono::milliseconds(250);
constexpr Duration kLongestSettle = std::chrono::seconds(1);
constexpr Duration kReconnects = std::chrono::seconds(1);  // a client that has RPCs to send
constexpr Duration kElephantReminder = std::chrono::minutes(1);

const char* UnitOf(LoadSignal signal) {
  switch (signal) {
    case LoadSignal::kRequests:
      return "rps";
    case LoadSignal::kInflight:
      return "open";
    case LoadSignal::kBytes:
      return "B/s";
  }
  return "";
}

}  // namespace

// What a plan is made of, with the way back from its indices.
struct Controller::Question {
  std::string service;
  RebalanceSettings settings;
  std::vector<PlanBackend> backends;
  std::vector<PlanConnection> connections;
  std::vector<const Connection*> who;  // of each PlanConnection
  double noise = 0;                    // standard error of the imbalance
};

namespace {

// Requests arrive at random: a count of n has a standard error of sqrt(n). Other signals are not counts; their noise is
// taken to be that of a service with as few requests.
double NoiseOf(const std::vector<PlanBackend>& backends, const std::vector<double>& loads,
               const std::vector<double>& counts) {
  double total = 0, weights = 0, noise = 0;
  for (size_t i = 0; i < backends.size(); ++i) {
    total += loads[i];
    weights += backends[i].weight;
  }
  for (size_t i = 0; i < backends.size(); ++i) {
    const double share = total * backends[i].weight / weights;
    if (share > 0 && counts[i] > 0)
      noise = std::max(noise, loads[i] / share / std::sqrt(counts[i]));
  }
  return noise;
}

}  // namespace

Controller::Question Controller::QuestionOf(const std::string& name, TimePoint now) {
  const ServiceWithBackends& service = desired_.at(name);
  Question question;
  question.service = name;
  question.settings = service.spec.policy.rebalance;
  std::map<BackendId, uint32_t> index;
  for (const auto& [endpoint, backend] : service.backends) {
    const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
    const auto row = sync_.installed().backends.find(id);
    if (row == sync_.installed().backends.end() ||
        row->second.state != BackendRow::State::kServing || backend.weight == 0)
      continue;
    index[id] = static_cast<uint32_t>(question.backends.size());
    question.backends.push_back({.id = id, .weight = static_cast<double>(backend.weight)});
  }
  // A connection under way counts where it is going.
  absl::flat_hash_map<ConnectionKey, BackendId> under_way;
  for (const Move* move : mover_.book().Unended()) {
    if (move->to != 0) under_way[move->connection] = move->to;
  }
  const ServiceId id = *ids_.IdOf(service.spec.vip);
  std::vector<double> loads(question.backends.size()), counts(question.backends.size());
  for (const Connection& connection : connections_) {
    if (connection.service != id || connection.closed) continue;
    const auto moving = under_way.find(connection.key);
    const auto at = index.find(moving == under_way.end() ? connection.backend : moving->second);
    if (at == index.end()) continue;
    const LoadTracker::Rates rates = loads_.RatesOf(connection);
    const double load = LoadOf(rates, question.settings.signal);
    const bool movable = connection.refusal == Refusal::kNone && moving == under_way.end() &&
                         cool_downs_.MayMove(connection.key, now);
    question.connections.push_back(
        {.backend = at->second, .load = static_cast<float>(load), .movable = movable});
    question.who.push_back(&connection);
    loads[at->second] += load;
    const Duration window = std::min(rates.measured_for, 2 * LoadTracker::kTimeConstant);
    counts[at->second] += rates.requests_per_second * std::chrono::duration<double>(window).count();
  }
  if (!question.backends.empty()) question.noise = NoiseOf(question.backends, loads, counts);
  return question;
}

// Pins of one client are taken in the order they were put in, whichever connection comes back first: so one client is sent
// to one backend at a time.
uint32_t Controller::CarryOut(const Question& question, const Plan& plan, uint32_t budget,
                              TimePoint now) {
  absl::flat_hash_map<IpAddress, BackendId> bound;
  for (const Move* move : mover_.book().Unended()) {
    // One that has been silent for so long comes back with its next RPC, whenever that is: nobody waits for it.
    const bool is_idle = move->acknowledged && now - *move->acknowledged > kReconnects;
    if (!is_idle && NameOf(move->service) == question.service)
      bound[move->connection.client.address] = move->to;
  }
  uint32_t begun = 0;
  for (const PlannedMove& planned : plan.moves) {
    if (begun >= budget) break;
    const Connection& connection = *question.who[planned.connection];
    const BackendId to = question.backends[planned.to].id;
    const auto [other, is_first] = bound.try_emplace(connection.key.client.address, to);
    if (!is_first && other->second != to) continue;
    const absl::StatusOr<MoveId> id = StartMove(connection, to, MoveReason::kRebalance, now);
    if (!id.ok() || mover_.book().Find(*id)->state == MoveState::kRefused) continue;
    ++begun;
    Publish("rebalanced", question.service,
            absl::StrFormat("moved %s (%.3g %s) %s -> %s: load %.2f -> %.2f of its share",
                            connection.key.client.ToString(),
                            question.connections[planned.connection].load,
                            UnitOf(question.settings.signal),
                            EndpointOf(question.backends[planned.from].id).ToString(),
                            EndpointOf(to).ToString(), planned.before, planned.after),
            now);
  }
  return begun;
}

void Controller::ReportElephants(const Question& question, const Plan& plan, TimePoint now) {
  for (const uint32_t elephant : plan.elephants) {
    const Connection& connection = *question.who[elephant];
    TimePoint& reported = elephants_[connection.key];
    if (reported != TimePoint() && now - reported < kElephantReminder) continue;
    reported = now;
    Publish("elephant", question.service,
            absl::StrFormat("%s alone carries %.3g %s, more than the share of a backend: it stays "
                            "on %s; split it, or send it through a proxy",
                            connection.key.client.ToString(), question.connections[elephant].load,
                            UnitOf(question.settings.signal),
                            EndpointOf(connection.backend).ToString()),
            now);
  }
  std::erase_if(elephants_,
                [&](const auto& entry) { return now - entry.second > 10 * kElephantReminder; });
}

void Controller::RebalanceService(const std::string& name, TimePoint now) {
  const Question question = QuestionOf(name, now);
  RebalanceGate& gate = gates_[name];
  const uint32_t budget = gate.Budget(question.settings.moves_per_second, now);
  if (question.backends.size() < 2) return;
  const double imbalance = ImbalanceOf(question.backends, question.connections);
  const bool due = gate.Observe(imbalance, 1 + question.settings.tolerance, question.noise,
                                question.settings.ticks);
  if (!due || budget == 0) return;
  const Plan plan = PlanMoves(
      question.backends, question.connections,
      {.tolerance = question.settings.tolerance, .worthwhile = std::max(0.02, question.noise)});
  ReportElephants(question, plan, now);
  gate.Spend(CarryOut(question, plan, budget, now));
}

// Older than the limit, which differs by up to 10 % from one to the next (gRFC A9), paced by the same budget.
void Controller::MoveAged(const std::string& name, TimePoint now) {
  const ServiceWithBackends& service = desired_.at(name);
  const Duration limit = service.spec.policy.max_connection_age;
  if (limit <= Duration::zero()) return;
  RebalanceGate& gate = gates_[name];
  uint32_t budget = gate.Budget(service.spec.policy.rebalance.moves_per_second, now);
  const ServiceId id = *ids_.IdOf(service.spec.vip);
  for (const Connection& connection : connections_) {
    if (budget == 0) return;
    if (connection.service != id || connection.closed || connection.refusal != Refusal::kNone)
      continue;
    if (mover_.book().IsMoving(connection.key) || !cool_downs_.MayMove(connection.key, now))
      continue;
    const double jitter =
        0.9 + 0.2 * static_cast<double>(absl::HashOf(connection.key) % 1000) / 1000;
    if (now - connection.created < std::chrono::duration_cast<Duration>(limit * jitter)) continue;
    const std::optional<BackendId> to = PickTargetFor(connection);
    if (!to) return;
    if (StartMove(connection, *to, MoveReason::kAge, now).ok()) {
      gate.Spend(1);
      --budget;
    }
  }
}

bool Controller::WantsRebalancing() const {
  return std::ranges::any_of(desired_, [](const auto& entry) {
    const ServicePolicy& policy = entry.second.spec.policy;
    return policy.rebalance.enabled || policy.outlier.latency_factor > 0 ||
           policy.connections_per_backend > 0 || policy.max_connection_age > Duration::zero();
  });
}

void Controller::Hurry(TimePoint now) {
  for (auto& [name, gate] : gates_) gate.Hurry();
  if (now >= settled_) unsettled_since_ = now;
  settled_ = std::min(now + kSettle, unsettled_since_ + kLongestSettle);
}

absl::Status Controller::StepRebalance(TimePoint now) {
  if (now < rebalance_due_ || !WantsRebalancing()) return absl::OkStatus();
  const TimePoint begun = Now();
  scanned_ = TimePoint();
  absl::Status status = Scan(now);
  if (status.ok()) {
    status.Update(JudgeOutliers(now));
    status.Update(SetRooms());
    for (const auto& [name, service] : desired_) {
      if (paused_ || now < settled_) break;
      if (service.spec.policy.rebalance.enabled) RebalanceService(name, now);
      MoveAged(name, now);
    }
  }
  cool_downs_.Forget(now);
  rebalance_due_ = now + std::max(kTick, kCostShare * (Now() - begun));
  if (now < settled_) rebalance_due_ = std::min(rebalance_due_, settled_);
  return status;
}

absl::StatusOr<RebalanceView> Controller::Rebalance(const RebalanceOrder& order) {
  absl::MutexLock lock(&mutex_);
  if (order.service && !desired_.contains(*order.service)) {
    return absl::NotFoundError(
        absl::StrCat("service: there is no service \"", *order.service, "\""));
  }
  const TimePoint now = Now();
  if (order.mode == RebalanceOrder::Mode::kPause || order.mode == RebalanceOrder::Mode::kResume) {
    paused_ = order.mode == RebalanceOrder::Mode::kPause;
    Publish(paused_ ? "rebalance-paused" : "rebalance-resumed", "",
            paused_ ? "nothing is moved but by order" : "moves go on", now);
    return RebalanceView{.paused = paused_, .moves = {}, .remarks = {}};
  }
  scanned_ = TimePoint();
  if (absl::Status status = Scan(now); !status.ok()) return status;
  RebalanceView view = {.paused = paused_, .moves = {}, .remarks = {}};
  for (const auto& [name, service] : desired_) {
    if (order.service && *order.service != name) continue;
    const Question question = QuestionOf(name, now);
    const Plan plan = PlanMoves(question.backends, question.connections,
                                {.tolerance = question.settings.tolerance});
    for (const PlannedMove& move : plan.moves) {
      view.moves.push_back({.service = name,
                            .client = question.who[move.connection]->key.client,
                            .from = EndpointOf(question.backends[move.from].id),
                            .to = EndpointOf(question.backends[move.to].id),
                            .load = question.connections[move.connection].load,
                            .load_before = move.before,
                            .load_after = move.after});
    }
    view.remarks.push_back(absl::StrFormat(
        "%s: %d of %d backends serve, the most loaded carries %.2f of its share, %.2f after %d "
        "moves%s",
        name, question.backends.size(), service.backends.size(), plan.imbalance, plan.expected,
        plan.moves.size(),
        question.backends.size() < 2 ? "; with fewer than two backends nothing is moved" : ""));
    for (const uint32_t elephant : plan.elephants) {
      view.remarks.push_back(
          absl::StrFormat("%s: %s alone carries more than the share of a backend and stays", name,
                          question.who[elephant]->key.client.ToString()));
    }
    if (order.mode == RebalanceOrder::Mode::kNow) {
      CarryOut(question, plan, question.settings.moves_per_second, now);
    }
  }
  return view;
}

}  // namespace unpin
