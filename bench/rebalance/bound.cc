// SPDX-License-Identifier: Apache-2.0
// The least that any plan must do, computed without the planner.
#include <algorithm>

#include "bench/rebalance/agent.h"

namespace unpin::sim {
namespace {

// Backends by elephant: one whose heaviest connection is more than a share of the rest has that as its share.
std::vector<double> SharesOf(const std::vector<std::vector<float>>& loads,
                             const std::vector<double>& sums) {
  std::vector<size_t> order;
  for (size_t i = 0; i < loads.size(); ++i) order.push_back(i);
  const auto heaviest = [&](size_t i) { return loads[i].empty() ? 0.0 : loads[i].front(); };
  std::ranges::sort(order, std::greater(), heaviest);
  double rest = 0;
  for (const double sum : sums) rest += sum;
  auto left = static_cast<double>(loads.size());
  std::vector<double> shares(loads.size());
  size_t next = 0;
  for (; next < order.size() && heaviest(order[next]) > rest / left; ++next) {
    shares[order[next]] = heaviest(order[next]);
    rest -= heaviest(order[next]);
    --left;
  }
  for (; next < order.size(); ++next) shares[order[next]] = rest / left;
  return shares;
}

}  // namespace

uint64_t FewestPossible(const std::vector<PlanBackend>& backends,
                        const std::vector<PlanConnection>& connections, double goal,
                        double ignored) {
  std::vector<std::vector<float>> loads(backends.size());
  std::vector<double> sums(backends.size());
  for (const PlanConnection& c : connections) {
    loads[c.backend].push_back(c.load);
    sums[c.backend] += c.load;
  }
  for (std::vector<float>& of_backend : loads) std::ranges::sort(of_backend, std::greater());
  const std::vector<double> shares = SharesOf(loads, sums);
  uint64_t fewest = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    double excess = sums[i] - goal * shares[i];
    if (sums[i] <= (goal + ignored) * shares[i]) continue;
    const bool is_elephant = !loads[i].empty() && loads[i].front() >= shares[i];
    for (size_t k = is_elephant; excess > 0 && k < loads[i].size(); ++k, ++fewest)
      excess -= loads[i][k];
  }
  return fewest;
}

}  // namespace unpin::sim
