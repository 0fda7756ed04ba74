// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/plan_moves.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "userspace/policy/balance.h"
#include "userspace/policy/fewest_moves.h"
#include "userspace/policy/shedding.h"

namespace unpin {
namespace {

constexpr double kEpsilon = 1e-9;  // of a share: sums differ in the last digits by their order
// Where the goal cannot be reached: the lowest maximum is looked for in such steps, and so much above it is as good, if
// that takes fewer moves.
constexpr double kFinerBy = 0.005;
constexpr double kSlack = 0.02;

struct Shed {
  std::vector<Relocation> moves;
  double reached = 0;
};

Shed RunShedding(std::span<const PlanConnection> connections, Balance balance,
                 const Shedding::Goal& goal) {
  Shed shed;
  shed.moves = Shedding(connections, balance, goal).Run();
  shed.reached = balance.Max();
  return shed;
}

// First without displacing: it needs fewer moves, and mostly it does.
Shed RunShedding(std::span<const PlanConnection> connections, const Balance& now,
                 const PlanSettings& settings, double ignored) {
  Shedding::Goal goal = {.ratio = 1 + settings.tolerance, .ignored = ignored};
  Shed plain = RunShedding(connections, now, goal);
  if (plain.reached <= goal.ratio + ignored + kEpsilon) return plain;
  goal.displace = true;
  Shed other = RunShedding(connections, now, goal);
  return other.reached < plain.reached - kSlack ? other : plain;
}

double ReachedBy(std::span<const PlanConnection> connections, Balance balance,
                 std::span<const Relocation> moves) {
  for (const Relocation& move : moves) {
    const PlanConnection& c = connections[move.connection];
    balance.Move(c.load, c.backend, move.to);
  }
  return balance.Max();
}

// What a complete search finds, within its bound: fewer moves than those of the first guess, or a lower maximum where the
// goal cannot be reached.
void Improve(std::span<const PlanConnection> connections, const Balance& now, double goal,
             Shed& shed) {
  FewestMoves search(connections, now.loads(), now.shares(), now.elephants());
  const auto adopt = [&](double limit, size_t most) {
    const auto found = search.Find(limit, static_cast<uint32_t>(most));
    if (found) shed = {*found, ReachedBy(connections, now, *found)};
    return found.has_value();
  };
  while (shed.reached > goal + kEpsilon) {
    if (!adopt(std::max(goal, shed.reached - kFinerBy), connections.size())) break;
  }
  const double limit = std::max(goal, shed.reached + (shed.reached > goal + kEpsilon ? kSlack : 0));
  if (shed.moves.size() > 1) adopt(limit, shed.moves.size() - 1);
}

// Two connections that each fill a backend, on the same one: all but the heaviest go where there is least. `connections` and
// `balance` follow.
std::vector<Relocation> PartElephants(std::vector<PlanConnection>& connections, Balance& balance) {
  const auto emptiest = [&] {
    std::optional<uint32_t> to;
    for (uint32_t i = 0; i < balance.loads().size(); ++i) {
      if (!balance.HoldsElephant(i) && (!to || balance.RatioOf(i) < balance.RatioOf(*to))) to = i;
    }
    return to;
  };
  std::optional<uint32_t> to = emptiest();
  if (!to) return {};
  std::vector<uint32_t>
      large;  // those that may be, now or when the others' shares have become less
  for (uint32_t i = 0; i < connections.size(); ++i) {
    if (connections[i].load > balance.shares()[*to] / 2 && connections[i].movable)
      large.push_back(i);
  }
  std::vector<Relocation> moves;
  for (; to; to = emptiest()) {
    uint32_t pick = UINT32_MAX;
    for (const uint32_t i : large) {
      const PlanConnection& c = connections[i];
      if (!balance.HoldsElephant(c.backend) || !c.movable || c.load <= balance.shares()[*to] ||
          std::ranges::binary_search(balance.elephants(), i))
        continue;
      if (pick == UINT32_MAX || c.load > connections[pick].load) pick = i;
    }
    if (pick == UINT32_MAX) break;
    PlanConnection& parted = connections[pick];
    balance.Part(pick, parted.load, parted.backend, *to);
    parted.backend = *to;
    parted.movable = false;
    moves.push_back({.connection = pick, .to = *to});
  }
  return moves;
}

// The moves with what each does to the backend it leaves, the most urgent first: what is carried out of a plan, if not all
// of it, is then what counts most.
std::vector<PlannedMove> InOrder(std::span<const PlanConnection> given, const Balance& at_first,
                                 std::span<const Relocation> moves) {
  const auto annotate = [&](std::vector<PlannedMove>& planned) {
    Balance balance = at_first;
    for (PlannedMove& move : planned) {
      move.before = balance.RatioOf(move.from);
      balance.Move(given[move.connection].load, move.from, move.to);
      move.after = balance.RatioOf(move.from);
    }
  };
  std::vector<PlannedMove> planned;
  for (const Relocation& move : moves) {
    planned.push_back(
        {.connection = move.connection, .from = given[move.connection].backend, .to = move.to});
  }
  annotate(planned);
  std::ranges::stable_sort(planned, std::greater(), &PlannedMove::before);
  annotate(planned);
  return planned;
}

}  // namespace

Plan PlanMoves(std::span<const PlanBackend> backends, std::span<const PlanConnection> given,
               const PlanSettings& settings) {
  Plan plan;
  if (backends.empty()) return plan;
  const Balance at_first(backends, given);
  plan.elephants = at_first.elephants();
  plan.imbalance = plan.expected = at_first.Max();
  const double goal = 1 + settings.tolerance;
  const double ignored = SignificantNoise(settings.noise, backends.size());
  if (backends.size() < 2 || plan.imbalance <= goal + ignored || settings.max_moves == 0)
    return plan;

  std::vector<PlanConnection> connections(given.begin(), given.end());
  Balance now = at_first;
  std::vector<Relocation> moves;
  if (!plan.elephants.empty()) moves = PartElephants(connections, now);
  Shed shed = RunShedding(connections, now, settings, ignored);
  if (FewestMoves::IsSmall(backends.size(), connections.size()))
    Improve(connections, now, goal, shed);
  if (shed.reached > plan.imbalance - settings.worthwhile) return plan;
  plan.expected = shed.reached;
  moves.insert(moves.end(), shed.moves.begin(), shed.moves.end());
  plan.moves = InOrder(given, at_first, moves);
  if (plan.moves.size() > settings.max_moves) plan.moves.resize(settings.max_moves);
  return plan;
}

double SignificantNoise(double noise, size_t backends) {
  return noise * (1 + std::sqrt(2 * std::log(std::max<size_t>(backends, 1))));
}

double ImbalanceOf(std::span<const PlanBackend> backends,
                   std::span<const PlanConnection> connections) {
  return backends.empty() ? 0 : Balance(backends, connections).Max();
}

}  // namespace unpin
