// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/plan_moves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "userspace/policy/fewest_moves.h"

namespace unpin {
namespace {

// Loads are floats: sums of them differ in the last digits by their order.
constexpr double kEpsilon = 1e-9;
// Where the goal cannot be reached: the lowest maximum is looked for in such steps, and so much above it is as good, if
// that takes fewer moves.
constexpr double kFinerBy = 0.005;
constexpr double kSlack = 0.02;

// How the load stands, and what each backend should carry.
class Balance {
 public:
  Balance(std::span<const PlanBackend> backends, std::span<const PlanConnection> connections)
      : backends_(backends), loads_(backends.size()), shares_(backends.size()) {
    for (const PlanConnection& connection : connections)
      loads_[connection.backend] += connection.load;
    FindElephants(connections);
  }

  double RatioOf(uint32_t backend) const {
    return shares_[backend] > 0  ? loads_[backend] / shares_[backend]
           : loads_[backend] > 0 ? kFull
                                 : 0;
  }
  double Max() const {
    double max = 0;
    for (uint32_t i = 0; i < loads_.size(); ++i) max = std::max(max, RatioOf(i));
    return max;
  }
  const std::vector<double>& shares() const { return shares_; }
  const std::vector<double>& loads() const { return loads_; }
  const std::vector<uint32_t>& elephants() const { return elephants_; }
  void Move(double load, uint32_t from, uint32_t to) {
    loads_[from] = std::max(0.0, loads_[from] - load);
    loads_[to] += load;
  }

 private:
  static constexpr double kFull = 1e9;  // load where none belongs

  // Shares by weight of what the elephants leave. One that is found makes the other shares smaller, which may make more of
  // them: until none is new.
  void FindElephants(std::span<const PlanConnection> connections) {
    const std::vector<int64_t> largest = LargestOfEach(connections);
    std::vector<bool> holds_elephant(backends_.size());
    for (int64_t next = -1;;) {
      if (next >= 0) {
        elephants_.push_back(static_cast<uint32_t>(next));
        holds_elephant[connections[next].backend] = true;
      }
      const double widest = Share(connections, largest, holds_elephant);
      next = -1;
      for (uint32_t i = 0; i < backends_.size(); ++i) {
        if (holds_elephant[i] || largest[i] < 0) continue;
        if (next < 0 || connections[largest[i]].load > connections[next].load) next = largest[i];
      }
      if (next < 0 || connections[next].load <= widest * (1 + kEpsilon)) break;
    }
    std::ranges::sort(elephants_);
  }

  std::vector<int64_t> LargestOfEach(std::span<const PlanConnection> connections) const {
    std::vector<int64_t> largest(backends_.size(), -1);
    for (uint32_t i = 0; i < connections.size(); ++i) {
      int64_t& best = largest[connections[i].backend];
      if (best < 0 || connections[i].load > connections[best].load) best = i;
    }
    return largest;
  }

  // Sets the shares; returns the largest of those without an elephant.
  double Share(std::span<const PlanConnection> connections, const std::vector<int64_t>& largest,
               const std::vector<bool>& holds_elephant) {
    double rest = 0, weights = 0, widest = 0;
    for (uint32_t i = 0; i < backends_.size(); ++i) {
      rest += loads_[i] - (holds_elephant[i] ? connections[largest[i]].load : 0);
      weights += holds_elephant[i] ? 0 : backends_[i].weight;
    }
    for (uint32_t i = 0; i < backends_.size(); ++i) {
      shares_[i] =
          holds_elephant[i] ? connections[largest[i]].load : rest * backends_[i].weight / weights;
      if (!holds_elephant[i]) widest = std::max(widest, shares_[i]);
    }
    return widest;
  }

  std::span<const PlanBackend> backends_;
  std::vector<double> loads_;
  std::vector<double> shares_;
  std::vector<uint32_t> elephants_;
};

// The movable connections of one backend, lightest first.
using Shelf = std::vector<uint32_t>;

std::vector<Shelf> ShelvesOf(size_t backends, std::span<const PlanConnection> connections,
                             const Balance& balance, double goal) {
  std::vector<Shelf> shelves(backends);
  std::vector<bool> is_over(backends);
  for (uint32_t i = 0; i < backends; ++i) is_over[i] = balance.RatioOf(i) > goal;
  std::vector<bool> stays(balance.elephants().empty() ? 0 : connections.size());
  for (const uint32_t elephant : balance.elephants()) stays[elephant] = true;
  for (uint32_t i = 0; i < connections.size(); ++i) {
    const PlanConnection& c = connections[i];
    if (is_over[c.backend] && c.movable && c.load > 0 && (stays.empty() || !stays[i]))
      shelves[c.backend].push_back(i);
  }
  for (Shelf& shelf : shelves) {
    std::ranges::sort(shelf, [&](uint32_t a, uint32_t b) {
      return connections[a].load != connections[b].load ? connections[a].load < connections[b].load
                                                        : a < b;
    });
  }
  return shelves;
}

// Takes load off the most loaded backend and gives it to the one with the most room, until all are under the goal or
// nothing lowers the maximum any more.
class Greedy {
 public:
  Greedy(std::span<const PlanConnection> connections, Balance& balance, double goal)
      : connections_(connections), balance_(balance), goal_(goal) {}

  std::vector<PlannedMove> Run(uint32_t max_moves) {
    const size_t backends = balance_.loads().size();
    std::vector<Shelf> shelves = ShelvesOf(backends, connections_, balance_, goal_);
    std::vector<uint32_t> over(backends);
    std::iota(over.begin(), over.end(), 0);
    std::erase_if(over, [&](uint32_t i) { return balance_.RatioOf(i) <= goal_; });
    std::ranges::sort(over, [&](uint32_t a, uint32_t b) {
      const double left = balance_.RatioOf(a), right = balance_.RatioOf(b);
      return left != right ? left > right : a < b;
    });
    for (uint32_t i = 0; i < backends; ++i) Offer(i);
    for (const uint32_t from : over) {
      while (balance_.RatioOf(from) > goal_ && moves_.size() < max_moves &&
             MoveOne(from, shelves[from]))
        continue;
    }
    return std::move(moves_);
  }

 private:
  double RoomOf(uint32_t backend) const {
    return goal_ * balance_.shares()[backend] - balance_.loads()[backend];
  }
  void Offer(uint32_t backend) {
    rooms_.push_back({RoomOf(backend), backend});
    std::ranges::push_heap(rooms_);
  }
  // The backend with the most room; entries of an earlier time are skipped.
  uint32_t Roomiest() {
    while (rooms_.front().first > RoomOf(rooms_.front().second) + kEpsilon) {
      const uint32_t backend = rooms_.front().second;
      std::ranges::pop_heap(rooms_);
      rooms_.pop_back();
      Offer(backend);
    }
    return rooms_.front().second;
  }

  bool MoveOne(uint32_t from, Shelf& shelf) {
    const uint32_t to = Roomiest();
    if (to == from || shelf.empty()) return false;
    const double need = -RoomOf(from), room = RoomOf(to);
    const auto lighter = [&](uint32_t c, double load) { return connections_[c].load < load; };
    // The lightest that is enough by itself, if it fits; else the heaviest that fits.
    auto pick = std::lower_bound(shelf.begin(), shelf.end(), need - kEpsilon, lighter);
    if (pick == shelf.end() || connections_[*pick].load > room + kEpsilon) {
      pick = std::lower_bound(shelf.begin(), shelf.end(), room + kEpsilon, lighter);
      if (pick == shelf.begin()) return MoveLightest(from, to, shelf);
      --pick;
    }
    Take(from, to, shelf, pick);
    return true;
  }

  // Nothing fits: the lightest may still make the maximum lower.
  bool MoveLightest(uint32_t from, uint32_t to, Shelf& shelf) {
    const double load = connections_[shelf.front()].load;
    const double share = balance_.shares()[to];
    if (share <= 0 || (balance_.loads()[to] + load) / share >= balance_.RatioOf(from) - kEpsilon)
      return false;
    Take(from, to, shelf, shelf.begin());
    return true;
  }

  void Take(uint32_t from, uint32_t to, Shelf& shelf, Shelf::iterator pick) {
    const uint32_t connection = *pick;
    shelf.erase(pick);
    const double before = balance_.RatioOf(from);
    balance_.Move(connections_[connection].load, from, to);
    moves_.push_back({.connection = connection,
                      .from = from,
                      .to = to,
                      .before = before,
                      .after = balance_.RatioOf(from)});
    Offer(to);
  }

  std::span<const PlanConnection> connections_;
  Balance& balance_;
  const double goal_;
  std::vector<std::pair<double, uint32_t>> rooms_;  // a heap
  std::vector<PlannedMove> moves_;
};

std::vector<PlannedMove> RunGreedy(std::span<const PlanConnection> connections, const Balance& now,
                                   double goal, uint32_t max_moves, double& reached) {
  Balance balance = now;
  std::vector<PlannedMove> moves = Greedy(connections, balance, goal).Run(max_moves);
  reached = balance.Max();
  return moves;
}

std::vector<PlannedMove> Annotated(std::span<const PlanConnection> connections, const Balance& now,
                                   const std::vector<Relocation>& relocations, double& reached) {
  Balance balance = now;
  std::vector<PlannedMove> moves;
  for (const Relocation& r : relocations) {
    const uint32_t from = connections[r.connection].backend;
    const double before = balance.RatioOf(from);
    balance.Move(connections[r.connection].load, from, r.to);
    moves.push_back({.connection = r.connection,
                     .from = from,
                     .to = r.to,
                     .before = before,
                     .after = balance.RatioOf(from)});
  }
  reached = balance.Max();
  return moves;
}

// What a complete search finds, within its bound: fewer moves than the greedy plan, or a lower maximum where the goal
// cannot be reached.
void Improve(std::span<const PlanConnection> connections, const Balance& now,
             const PlanSettings& settings, double goal, Plan& plan) {
  FewestMoves search(connections, now.loads(), now.shares(), now.elephants());
  const auto adopt = [&](double limit, uint32_t most) {
    const auto found = search.Find(limit, most);
    if (found) plan.moves = Annotated(connections, now, *found, plan.expected);
    return found.has_value();
  };
  while (plan.expected > goal + kEpsilon) {
    const double wanted = std::max(goal, plan.expected - kFinerBy);
    if (!adopt(wanted,
               static_cast<uint32_t>(std::min<size_t>(connections.size(), settings.max_moves))))
      break;
  }
  const double limit =
      std::max(goal, plan.expected + (plan.expected > goal + kEpsilon ? kSlack : 0));
  if (plan.moves.size() > 1) adopt(limit, static_cast<uint32_t>(plan.moves.size()) - 1);
}

// Two connections that each fill a backend, on the same one: all but the heaviest go where there is least.
std::vector<PlannedMove> PartElephants(std::span<const PlanBackend> backends,
                                       std::vector<PlanConnection>& connections,
                                       uint32_t max_moves) {
  std::vector<PlannedMove> moves;
  while (moves.size() < max_moves) {
    const Balance now(backends, connections);
    std::vector<bool> holds(backends.size());
    for (const uint32_t elephant : now.elephants()) holds[connections[elephant].backend] = true;
    uint32_t to = UINT32_MAX;
    for (uint32_t i = 0; i < backends.size(); ++i) {
      if (!holds[i] && (to == UINT32_MAX || now.RatioOf(i) < now.RatioOf(to))) to = i;
    }
    if (to == UINT32_MAX) return moves;
    int64_t pick = -1;
    for (uint32_t i = 0; i < connections.size(); ++i) {
      const PlanConnection& c = connections[i];
      if (!holds[c.backend] || !c.movable || c.load <= now.shares()[to] ||
          std::ranges::binary_search(now.elephants(), i))
        continue;
      if (pick < 0 || c.load > connections[pick].load) pick = i;
    }
    if (pick < 0) return moves;
    const uint32_t from = connections[pick].backend;
    const double before = now.RatioOf(from);
    connections[pick].backend = to;
    moves.push_back({.connection = static_cast<uint32_t>(pick),
                     .from = from,
                     .to = to,
                     .before = before,
                     .after = Balance(backends, connections).RatioOf(from)});
    connections[pick].movable = false;
  }
  return moves;
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
  if (backends.size() < 2 || plan.imbalance <= goal || settings.max_moves == 0) return plan;

  std::vector<PlanConnection> connections(given.begin(), given.end());
  std::vector<PlannedMove> parted;
  if (!plan.elephants.empty()) parted = PartElephants(backends, connections, settings.max_moves);
  const Balance now(backends, connections);
  PlanSettings rest = settings;
  rest.max_moves -= static_cast<uint32_t>(parted.size());
  plan.moves = RunGreedy(connections, now, goal, rest.max_moves, plan.expected);
  if (FewestMoves::IsSmall(backends.size(), connections.size()))
    Improve(connections, now, rest, goal, plan);
  plan.moves.insert(plan.moves.begin(), parted.begin(), parted.end());
  for (const PlannedMove& move : plan.moves) connections[move.connection].backend = move.to;
  plan.expected = ImbalanceOf(backends, connections);
  if (plan.expected > plan.imbalance - settings.worthwhile) {
    plan.moves.clear();
    plan.expected = plan.imbalance;
  }
  return plan;
}

double ImbalanceOf(std::span<const PlanBackend> backends,
                   std::span<const PlanConnection> connections) {
  return backends.empty() ? 0 : Balance(backends, connections).Max();
}

}  // namespace unpin
