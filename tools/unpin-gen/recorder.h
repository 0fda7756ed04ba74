// SPDX-License-Identifier: Apache-2.0
// What became of every RPC of a load: counts by backend, connection and time, latencies, failures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/unpin/gen/v1/report.pb.h"
#include "tools/unpin-gen/histogram.h"
#include "userspace/base/clock.h"

namespace unpin::gen {

// One RPC's end. Times count from the beginning of the load.
struct Outcome {
  size_t connection = 0;
  Duration scheduled{0};
  Duration ended{0};
  std::string backend;  // of the reply; empty when it failed
  std::string peer;     // the client as the backend saw it
  std::string failure;  // the status code's name; empty when it succeeded
  std::string message;
};

// Totals so far, for a live view to difference.
struct Progress {
  uint32_t sent = 0;
  uint32_t failed = 0;
  std::vector<std::pair<std::string, uint32_t>> backends;  // succeeded, sorted by name
};

// Thread-safe.
class Recorder {
 public:
  // Failures beyond are only counted.
  static constexpr size_t kMaxFailureEvents = 20'000;

  // `rates` of the connections (0: closed loop). `bucket` > 0. Backends that are expected but unseen count
  // as idle in max/mean.
  Recorder(std::vector<double> rates, Duration bucket, size_t expected_backends);

  // `lag`: how much later than scheduled it was sent.
  void Sent(size_t connection, Duration scheduled, Duration lag);
  void Ended(const Outcome& outcome);

  Progress GetProgress() const;

  // All but target, arrivals, seed and began_unix_s. `duration`: for how long requests were sent.
  v1::LoadReport Report(Duration duration) const;

 private:
  using BackendCounts = std::vector<uint32_t>;  // by backend index

  struct Bucket {
    uint32_t sent = 0;
    uint32_t succeeded = 0;
    uint32_t failed = 0;
    Duration latency_sum{0};
    Duration worst{0};
    BackendCounts backends;
  };
  struct Connection {
    double rate = 0;
    uint32_t sent = 0;
    uint32_t succeeded = 0;
    uint32_t failed = 0;
    absl::flat_hash_set<std::string> peers;  // one a TCP connection it has had
    BackendCounts backends;
  };

  static uint32_t Reconnects(const Connection& connection);
  Bucket& BucketAt(Duration scheduled);
  void Succeeded(const Outcome& outcome);
  void Failed(const Outcome& outcome);
  double MaxOverMean(const BackendCounts& counts) const;
  void ReportBackends(v1::LoadReport& report) const;
  void ReportSeries(v1::LoadReport& report) const;
  void ReportConnections(v1::LoadReport& report) const;
  void ReportLatency(v1::Latency& latency) const;

  const Duration bucket_;
  const size_t expected_backends_;
  mutable std::mutex mutex_;
  std::vector<std::string> backend_names_;
  absl::flat_hash_map<std::string, size_t> backend_index_;
  BackendCounts backend_counts_;
  std::vector<Bucket> buckets_;
  std::vector<Connection> connections_;
  Histogram latency_;
  Duration worst_lag_{0};
  v1::Totals totals_;
  v1::Failures failures_;
};

}  // namespace unpin::gen
