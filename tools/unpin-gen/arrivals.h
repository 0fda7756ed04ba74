// SPDX-License-Identifier: Apache-2.0
// When which connection sends: rates of connections, and the schedule drawn from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "userspace/base/clock.h"

namespace unpin::gen {

struct RateOptions {
  std::string shape = "equal";        // "equal", "zipf:S", or a list of weights "5,3,1"
  std::optional<size_t> connections;  // default: as many as the list has, else 8
  std::optional<double> total_rps;  // default: the list itself holds requests per second, else 100
};

// Requests per second of each connection. InvalidArgument names what is wrong with `options`.
absl::StatusOr<std::vector<double>> PlanRates(const RateOptions& options);

// The same order for the same seed on every machine.
void Shuffle(std::vector<double>& rates, uint32_t seed);

struct Arrival {
  Duration at{0};  // since the load began
  size_t connection = 0;
};

enum class Spacing {
  kPoisson,  // independent exponential gaps
  kUniform,  // equal gaps; equal rates make the connections take turns
};

// An endless schedule: each connection sends at its own rate, independent of answers. A rate of 0 never
// sends. Requires at least one positive rate.
class Schedule {
 public:
  Schedule(std::vector<double> rates, Spacing spacing, uint32_t seed);

  // Arrivals in order of time.
  Arrival Next();

 private:
  struct Later {
    bool operator()(const Arrival& a, const Arrival& b) const {
      return a.at != b.at ? a.at > b.at : a.connection > b.connection;
    }
  };

  Duration Gap(size_t connection);

  std::vector<double> rates_;
  Spacing spacing_;
  std::mt19937_64 random_;
  std::priority_queue<Arrival, std::vector<Arrival>, Later> next_;
};

}  // namespace unpin::gen
