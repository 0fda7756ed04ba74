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
  // Of rates: half of a step shows after 0.7 times this. What was measured for less long counts as a plain mean.
  static constexpr Duration kTimeConstant = std::chrono::seconds(2);
  // Of open streams and latencies: a backend that has become slow must show at once.
  static constexpr Duration kStreamsTimeConstant = std::chrono::milliseconds(300);

  struct Rates {
    double requests_per_second = 0;
    double bytes_per_second = 0;  // both directions, TCP payload
    double open_streams = 0;
    Duration measured_for{};
  };
  struct BackendLoad {
    uint64_t connections = 0;
    uint64_t open_streams = 0;
    Rates rates;
    double mean_open = 0;  // kept while nothing is asked of the backend
    double completions_per_second = 0;
    // Mean, by Little's law: what is open divided by what is completed a second. 0 while nothing has been completed.
    double latency_seconds() const {
      return completions_per_second > 0 ? mean_open / completions_per_second : 0;
    }
  };

  // A snapshot of all connections. A connection seen for the first time has its mean rate so far; closed ones are
  // forgotten.
  void Update(std::span<const Connection> connections, TimePoint now);

  // A move has taken its client from one connection to the other: the new one begins with the load of the old, which is
  // measured afresh, so that what a long stream leaves there shows.
  void Succeed(const ConnectionKey& old, const ConnectionKey& next, TimePoint now);

  // What was known of the backend's latency.
  void Forget(BackendId backend) { trends_.erase(backend); }

  Rates RatesOf(const Connection& connection) const;
  BackendLoad LoadOf(BackendId backend) const;
  uint64_t ConnectionsOf(ServiceId service) const;

 private:
  struct Entry {
    TimePoint created;  // tells a reused address and port from the old connection
    TimePoint since;    // the rates are a mean from here on, until the time constant takes over
    TimePoint seen;
    uint64_t streams = 0;
    uint64_t ended = 0;
    uint64_t bytes = 0;
    Rates rates;
  };
  struct Trend {
    double open = 0;
    double completions = 0;
    double ended = 0;  // since the last update
    TimePoint seen;
  };

  Entry Next(const Entry* before, const Connection& connection, TimePoint now) const;
  void UpdateTrends(TimePoint now);

  absl::flat_hash_map<ConnectionKey, Entry> entries_;
  absl::flat_hash_map<ConnectionKey, Entry> heirs_;  // not yet seen
  absl::flat_hash_map<BackendId, Trend> trends_;
  absl::flat_hash_map<BackendId, BackendLoad> backends_;
  absl::flat_hash_map<ServiceId, uint64_t> services_;
};

// A connection's or backend's load in the unit of the signal.
double LoadOf(const LoadTracker::Rates& rates, LoadSignal signal);

}  // namespace unpin
