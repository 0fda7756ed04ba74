// SPDX-License-Identifier: Apache-2.0
// Requests and bytes per second of connections, from successive scans of their counts. Pure but for its memory.
#pragma once

#include <span>

#include "absl/container/flat_hash_map.h"
#include "userspace/model/connection.h"

namespace unpin {

struct Rates {
  double requests_per_second = 0;
  double bytes_per_second = 0;  // both directions

  Rates& operator+=(const Rates& other) {
    requests_per_second += other.requests_per_second;
    bytes_per_second += other.bytes_per_second;
    return *this;
  }
};

// Exponentially smoothed with kTimeConstant: a step of the load shows to 63 % after so long, whatever the times
// of the scans. A connection's first rate is the average over its life.
class RateMeter {
 public:
  static constexpr Duration kTimeConstant = std::chrono::seconds(2);

  // `connections` are all there are: others are forgotten.
  void Observe(std::span<const Connection> connections, TimePoint now);
  Rates Of(const Connection& connection) const;

 private:
  struct Seen {
    TimePoint created;  // tells a reused port from the connection that had it before
    TimePoint at;
    uint64_t requests = 0;
    uint64_t bytes = 0;
    Rates rates;
  };

  static Seen Next(const Seen* previous, const Connection& connection, TimePoint now);

  absl::flat_hash_map<ConnectionKey, Seen> seen_;
};

}  // namespace unpin
