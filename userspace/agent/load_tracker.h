// SPDX-License-Identifier: Apache-2.0
// Turns counters seen at two times into smoothed rates, per connection and per backend. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "userspace/model/connection.h"

namespace unpin {

class LoadTracker {
 public:
  // Half of a step shows after 0.7 times this.
  static constexpr Duration kTimeConstant = std::chrono::seconds(2);

  struct Rates {
    double requests_per_second = 0;
    double bytes_per_second = 0;  // both directions, TCP payload
  };
  struct BackendLoad {
    uint64_t connections = 0;
    uint64_t open_streams = 0;
    Rates rates;
  };

  // A snapshot of all connections. A connection seen for the first time has its mean rate so far; closed ones are
  // forgotten.
  void Update(std::span<const Connection> connections, TimePoint now);

  Rates RatesOf(const Connection& connection) const;
  BackendLoad LoadOf(BackendId backend) const;
  uint64_t ConnectionsOf(ServiceId service) const;

 private:
  struct Entry {
    TimePoint created;  // tells a reused address and port from the old connection
    TimePoint seen;
    uint64_t streams = 0;
    uint64_t bytes = 0;
    Rates rates;
  };

  static Entry Next(const Entry* before, const Connection& connection, TimePoint now);

  absl::flat_hash_map<ConnectionKey, Entry> entries_;
  absl::flat_hash_map<BackendId, BackendLoad> backends_;
  absl::flat_hash_map<ServiceId, uint64_t> services_;
};

}  // namespace unpin
