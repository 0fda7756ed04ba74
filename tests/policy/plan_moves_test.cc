// SPDX-License-Identifier: Apache-2.0
// The planner against an exhaustive search of its own, on thousands of small cases, and against the cases that hurt.
#include "userspace/policy/plan_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

namespace unpin {
namespace {

using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

struct Case {
  std::vector<PlanBackend> backends;
  std::vector<PlanConnection> connections;
};

Case Equal(size_t backends) {
  Case c;
  for (size_t i = 0; i < backends; ++i)
    c.backends.push_back({.id = static_cast<BackendId>(i + 1), .weight = 100});
  return c;
}

void Add(Case& c, uint32_t backend, std::initializer_list<float> loads, bool movable = true) {
  for (const float load : loads)
    c.connections.push_back({.backend = backend, .load = load, .movable = movable});
}

std::vector<PlanConnection> After(const Case& c, const Plan& plan) {
  std::vector<PlanConnection> connections = c.connections;
  for (const PlannedMove& move : plan.moves) {
    EXPECT_EQ(connections[move.connection].backend, move.from);
    connections[move.connection].backend = move.to;
  }
  return connections;
}

// max over backends of load / (weight share of everything): written without the code under test.
double MaxOverMean(const Case& c, const std::vector<PlanConnection>& connections) {
  std::vector<double> loads(c.backends.size());
  double total = 0, weights = 0;
  for (const PlanConnection& connection : connections) {
    loads[connection.backend] += connection.load;
    total += connection.load;
  }
  for (const PlanBackend& backend : c.backends) weights += backend.weight;
  double max = 0;
  for (size_t i = 0; i < loads.size(); ++i)
    max = std::max(max, loads[i] / (total * c.backends[i].weight / weights));
  return max;
}

// Every assignment of every movable connection: the lowest maximum, and the fewest moves at or under a limit.
struct Exhaustive {
  explicit Exhaustive(const Case& given) : c(given), connections(given.connections) {}
  void Run(size_t next, uint32_t moved) {
    if (next == connections.size()) {
      const double max = measure(c, connections);
      lowest = std::min(lowest, max);
      if (max <= limit + 1e-6) fewest = std::min(fewest, moved);
      return;
    }
    const uint32_t home = connections[next].backend;
    for (uint32_t to = 0; to < c.backends.size(); ++to) {
      if (to != home && !connections[next].movable) continue;
      connections[next].backend = to;
      Run(next + 1, moved + (to != home));
    }
    connections[next].backend = home;
  }
  const Case& c;
  std::vector<PlanConnection> connections;
  double (*measure)(const Case&, const std::vector<PlanConnection>&) = MaxOverMean;
  double limit = 1.05;
  double lowest = 1e9;
  uint32_t fewest = UINT32_MAX;
};

unsigned Seed() {
  const char* given = std::getenv("UNPIN_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::printf("seed: UNPIN_TEST_SEED=%u\n", seed);
  return seed;
}

// Loads small against the shares: no elephants.
Case RandomCase(std::mt19937& random) {
  std::uniform_int_distribution<uint32_t> backends(2, 4), connections(6, 8), weight(1, 3),
      percent(0, 99);
  std::uniform_real_distribution<float> load(1, 4);
  Case c;
  const uint32_t count = backends(random);
  for (uint32_t i = 0; i < count; ++i)
    c.backends.push_back({.id = i + 1, .weight = double(weight(random))});
  const uint32_t total = connections(random);
  for (uint32_t i = 0; i < total; ++i) {
    c.connections.push_back({.backend = percent(random) % count,
                             .load = load(random),
                             .movable = percent(random) < 85});
  }
  return c;
}

TEST(PlanMoves, NeedsAtMostOneMoveMoreThanTheOptimum) {
  std::mt19937 random(Seed());
  int reachable = 0, optimal = 0;
  for (int i = 0; i < 3000; ++i) {
    const Case c = RandomCase(random);
    const Plan plan = PlanMoves(c.backends, c.connections, {.worthwhile = 0});
    if (!plan.elephants.empty()) continue;
    Exhaustive best(c);
    best.Run(0, 0);
    const double reached = MaxOverMean(c, After(c, plan));
    if (best.fewest == UINT32_MAX) {
      EXPECT_LE(reached, std::max(best.lowest + 0.03, 1.05)) << "case " << i;
      continue;
    }
    ++reachable;
    EXPECT_LE(reached, std::max(1.05 + 1e-6, best.lowest + 0.02)) << "case " << i;
    EXPECT_LE(plan.moves.size(), best.fewest + 1) << "case " << i;
    optimal += plan.moves.size() <= best.fewest;
  }
  std::printf("%d of %d reachable cases with the optimal number of moves\n", optimal, reachable);
  EXPECT_GT(reachable, 100);
}

TEST(PlanMoves, NeverRaisesTheMaximumNorMovesWhatMayNotMove) {
  std::mt19937 random(Seed());
  std::uniform_real_distribution<float> load(0, 30);
  for (int i = 0; i < 3000; ++i) {
    Case c = RandomCase(random);
    for (PlanConnection& connection : c.connections) {
      if (random() % 4 == 0) connection.load = load(random);
    }
    const Plan plan = PlanMoves(c.backends, c.connections, {});
    EXPECT_LE(ImbalanceOf(c.backends, After(c, plan)), plan.imbalance + 1e-6) << "case " << i;
    EXPECT_NEAR(ImbalanceOf(c.backends, After(c, plan)), plan.expected, 1e-4) << "case " << i;
    std::vector<bool> moved(c.connections.size());
    for (const PlannedMove& move : plan.moves) {
      EXPECT_TRUE(c.connections[move.connection].movable) << "case " << i;
      EXPECT_NE(move.from, move.to);
      EXPECT_FALSE(moved[move.connection]) << "twice in one plan, case " << i;
      moved[move.connection] = true;
      EXPECT_THAT(plan.elephants, ::testing::Not(::testing::Contains(move.connection)))
          << "case " << i;
    }
  }
}

// The first connection fills a backend by itself: that is this backend's share, and the others divide the rest equally.
double MaxBesideAnElephant(const Case& c, const std::vector<PlanConnection>& connections) {
  std::vector<double> loads(c.backends.size());
  double total = 0;
  for (const PlanConnection& connection : connections) {
    loads[connection.backend] += connection.load;
    total += connection.load;
  }
  const double elephant = connections[0].load;
  const double share = (total - elephant) / static_cast<double>(loads.size() - 1);
  double max = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    max = std::max(max, loads[i] / (i == connections[0].backend ? elephant : share));
  }
  return max;
}

// DESIGN section 10, S1: rates 800 (1/i) / H8, wherever the connections begin.
TEST(PlanMoves, WhalesReachTheWholeConnectionOptimum) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 200; ++i) {
    Case c = Equal(3);
    for (int rank = 1; rank <= 8; ++rank) {
      c.connections.push_back({.backend = static_cast<uint32_t>(random() % 3),
                               .load = float(800 / 2.717857 / rank),
                               .movable = true});
    }
    const Plan plan = PlanMoves(c.backends, c.connections, {});
    EXPECT_LE(MaxOverMean(c, After(c, plan)), 1.104 + 0.05) << "start " << i;
    Case kept = c;
    kept.connections[0].movable = false;  // never bounced
    Exhaustive best(kept);
    best.measure = MaxBesideAnElephant;
    best.limit = std::max(1.05, MaxBesideAnElephant(c, After(c, plan)));
    best.Run(0, 0);
    EXPECT_LE(plan.moves.size(), best.fewest + 1) << "start " << i;
  }
}

// S2: sixteen equal connections on two backends, two more added.
TEST(PlanMoves, ScaleUpMovesExactlyEight) {
  Case c = Equal(4);
  for (int i = 0; i < 16; ++i) Add(c, i % 2, {37.5f});
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  EXPECT_THAT(plan.moves, SizeIs(8));
  EXPECT_NEAR(MaxOverMean(c, After(c, plan)), 1, 1e-6);
}

TEST(PlanMoves, AGainTooSmallIsNotWorthAMove) {
  Case c = Equal(2);
  Add(c, 0, {50, 1, 1});
  Add(c, 1, {47, 1});
  EXPECT_THAT(PlanMoves(c.backends, c.connections, {.tolerance = 0.01, .worthwhile = 0.05}).moves,
              IsEmpty());
  EXPECT_THAT(PlanMoves(c.backends, c.connections, {.tolerance = 0.01, .worthwhile = 0.01}).moves,
              SizeIs(2));
}

TEST(PlanMoves, BalancedOrNearlySoNeedsNothing) {
  Case c = Equal(2);
  Add(c, 0, {10, 10});
  Add(c, 1, {10, 9.2f});
  EXPECT_THAT(PlanMoves(c.backends, c.connections, {}).moves, IsEmpty());
}

TEST(PlanMoves, ElephantIsNamedAndLeftAlone) {
  Case c = Equal(3);
  Add(c, 0, {100, 20, 20});
  Add(c, 1, {10});
  Add(c, 2, {10});
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  EXPECT_THAT(plan.elephants, ::testing::ElementsAre(0));
  for (const PlannedMove& move : plan.moves) EXPECT_NE(move.connection, 0u);
  EXPECT_THAT(plan.moves, SizeIs(2)) << "its companions go elsewhere";
}

TEST(PlanMoves, TwoElephantsOnOneBackendPart) {
  Case c = Equal(3);
  Add(c, 0, {100, 90});
  Add(c, 1, {1});
  Add(c, 2, {1});
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  ASSERT_THAT(plan.moves, ::testing::Not(IsEmpty()));
  EXPECT_EQ(plan.moves[0].connection, 1u);
  const std::vector<PlanConnection> after = After(c, plan);
  EXPECT_THAT(PlanMoves(c.backends, after, {}).moves, IsEmpty())
      << "and nobody is bounced afterwards";
}

TEST(PlanMoves, WeightsAreCapacities) {
  Case c = Equal(2);
  c.backends[1].weight = 300;
  Add(c, 0, {10, 10, 10, 10});
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  EXPECT_THAT(plan.moves, SizeIs(3));
}

TEST(PlanMoves, NothingMovableNothingPlanned) {
  Case c = Equal(2);
  Add(c, 0, {10, 10, 10}, /*movable=*/false);
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  EXPECT_THAT(plan.moves, IsEmpty());
  EXPECT_NEAR(plan.imbalance, 2, 1e-6);
}

TEST(PlanMoves, OneBackendOrNoneNeedsNoPlan) {  // kubernetes#88567
  Case c = Equal(1);
  Add(c, 0, {10, 10});
  EXPECT_THAT(PlanMoves(c.backends, c.connections, {}).moves, IsEmpty());
  EXPECT_THAT(PlanMoves({}, {}, {}).moves, IsEmpty());
}

TEST(PlanMoves, TheSameWhateverTheOrderOfConnections) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 300; ++i) {
    Case c = RandomCase(random);
    const Plan one = PlanMoves(c.backends, c.connections, {});
    std::ranges::shuffle(c.connections, random);
    const Plan other = PlanMoves(c.backends, c.connections, {});
    EXPECT_EQ(one.moves.size(), other.moves.size()) << "case " << i;
    EXPECT_NEAR(one.expected, other.expected, 0.02) << "case " << i;
  }
}

TEST(PlanMoves, LargeCasesConvergeWithinTheLowerBound) {
  std::mt19937 random(Seed());
  std::lognormal_distribution<float> load(0, 1.2f);
  Case c = Equal(200);
  for (int i = 0; i < 40'000; ++i) {
    // A third of the backends got most of the connections.
    const uint32_t backend = random() % 4 == 0 ? random() % 200 : random() % 70;
    c.connections.push_back({.backend = backend, .load = load(random), .movable = true});
  }
  const Plan plan = PlanMoves(c.backends, c.connections, {});
  // A connection that is more than a share is the share of its backend, which may carry 5 % more.
  float heaviest = 0;
  double all = 0;
  for (const PlanConnection& connection : c.connections) {
    heaviest = std::max(heaviest, connection.load);
    all += connection.load;
  }
  EXPECT_LE(MaxOverMean(c, After(c, plan)), 1.05 * std::max(1.0, heaviest * 200.0 / all) + 1e-3);
  // No plan can do with fewer than each overloaded backend's heaviest connections that make up its excess.
  std::vector<std::vector<float>> of_backend(200);
  double total = 0;
  for (const PlanConnection& connection : c.connections) {
    of_backend[connection.backend].push_back(connection.load);
    total += connection.load;
  }
  size_t bound = 0;
  for (std::vector<float>& loads : of_backend) {
    double excess = std::accumulate(loads.begin(), loads.end(), 0.0) - 1.05 * total / 200;
    std::ranges::sort(loads, std::greater());
    for (size_t i = 0; excess > 0 && i < loads.size(); ++i, ++bound) excess -= loads[i];
  }
  std::printf("%zu moves, lower bound %zu\n", plan.moves.size(), bound);
  EXPECT_LE(plan.moves.size(), bound * 1.1);
}

}  // namespace
}  // namespace unpin
