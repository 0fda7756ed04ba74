// SPDX-License-Identifier: Apache-2.0
#include "bench/rebalance/fleet.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unpin::sim {

Fleet::Fleet(const FleetSettings& settings, uint64_t seed)
    : random(seed),
      serving(settings.backends, true),
      backend(settings.connections),
      usual(settings.connections),
      client(settings.connections) {
  for (uint32_t i = 0; i < settings.connections; ++i) {
    usual[i] = static_cast<float>(std::pow(i + 1.0, -settings.zipf));
    const double kind = Random();
    client[i] = kind < settings.refusing                    ? Client::kRefuses
                : kind < settings.refusing + settings.stray ? Client::kStrays
                                                            : Client::kObeys;
  }
  std::ranges::shuffle(usual, random);
  // 1,000 requests/s a backend, so that the noise of counting is that of a real service.
  const double total = std::accumulate(usual.begin(), usual.end(), 0.0);
  for (float& one : usual) one *= static_cast<float>(1000.0 * settings.backends / total);
  load = usual;
  for (uint32_t i = 0; i < settings.connections; ++i) Steer(i);
}

void Fleet::Steer(uint32_t connection) {
  if (std::ranges::find(serving, true) == serving.end()) return;
  do {
    backend[connection] = static_cast<uint32_t>(random() % serving.size());
  } while (!serving[backend[connection]]);
}

void Fleet::Drift(double burst_share) {
  std::normal_distribution<float> step(0, 0.01f);
  // A slice of the connections a tick: a random walk that comes back to what is usual.
  const size_t begin = random() % 16;
  for (size_t i = begin; i < load.size(); i += 16)
    load[i] += 0.05f * (usual[i] - load[i]) + load[i] * step(random);
  for (auto& [connection, left] : bursts_) {
    if (--left == 0) load[connection] = usual[connection];
  }
  std::erase_if(bursts_, [](const auto& burst) { return burst.second == 0; });
  const auto fresh = static_cast<uint32_t>(burst_share * static_cast<double>(load.size()));
  for (uint32_t i = 0; i < fresh; ++i) {
    const auto connection = static_cast<uint32_t>(random() % load.size());
    load[connection] = usual[connection] * 5;
    bursts_.push_back({connection, 5 + static_cast<uint32_t>(random() % 20)});
  }
}

void Fleet::Step(double share, float factor) {
  for (size_t i = 0; i < load.size(); ++i) {
    if (Random() < share) load[i] = usual[i] *= factor;
  }
}

void Fleet::Fail(uint32_t failed) {
  serving[failed] = false;
  for (uint32_t i = 0; i < backend.size(); ++i) {
    if (backend[i] == failed) Steer(i);
  }
}

}  // namespace unpin::sim
