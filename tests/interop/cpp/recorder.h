// SPDX-License-Identifier: Apache-2.0
// Gathers what a client saw, from all its threads.
#pragma once

#include <grpcpp/support/status.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/interop/echo.pb.h"

namespace unpin::interop {

using SteadyTime = std::chrono::steady_clock::time_point;

class Recorder {
 public:
  // One RPC as its caller saw it.
  struct Outcome {
    uint32_t connection = 0;
    SteadyTime begun;
    grpc::Status status;
    std::string server;  // that began to answer
    bool corrupt = false;
    bool split = false;
  };

  void Add(const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    const double took_ms = Milliseconds(std::chrono::steady_clock::now() - outcome.begun);
    report_.set_rpcs(report_.rpcs() + 1);
    took_ms_.push_back(took_ms);
    const bool altered = outcome.corrupt || outcome.status.error_code() == grpc::DATA_LOSS;
    if (altered) report_.set_corrupt(report_.corrupt() + 1);
    if (outcome.split) report_.set_split_streams(report_.split_streams() + 1);
    if (!outcome.status.ok()) AddFailure(outcome, took_ms);
    if (!outcome.server.empty()) AddLanding(outcome);
  }

  // Requires that no Add runs any more.
  Report Finish() {
    std::sort(took_ms_.begin(), took_ms_.end());
    report_.set_p50_ms(Quantile(0.5));
    report_.set_p99_ms(Quantile(0.99));
    report_.set_max_ms(Quantile(1));
    return report_;
  }

 private:
  static constexpr int kListedFailures = 50;

  static double Milliseconds(std::chrono::steady_clock::duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  }

  double Since(SteadyTime time) const { return Milliseconds(time - start_) / 1000; }

  double Quantile(double share) const {
    return took_ms_.empty() ? 0 : took_ms_[static_cast<size_t>(share * (took_ms_.size() - 1))];
  }

  void AddFailure(const Outcome& outcome, double took_ms) {
    report_.set_failed(report_.failed() + 1);
    if (report_.failures_size() == kListedFailures) return;
    Report::Failure* failure = report_.add_failures();
    failure->set_connection(outcome.connection);
    failure->set_at_s(Since(outcome.begun));
    failure->set_took_ms(took_ms);
    failure->set_code(std::to_string(outcome.status.error_code()));
    failure->set_detail(outcome.status.error_message());
  }

  void AddLanding(const Outcome& outcome) {
    Last& last = last_[outcome.connection];
    // A long RPC ends after shorter ones that were begun later elsewhere.
    if (outcome.begun < last.begun) return;
    last.begun = outcome.begun;
    if (outcome.server == last.server) return;
    last.server = outcome.server;
    Report::Landing* landing = report_.add_landings();
    landing->set_connection(outcome.connection);
    landing->set_at_s(Since(outcome.begun));
    landing->set_server(outcome.server);
  }

  struct Last {
    SteadyTime begun;
    std::string server;
  };

  const SteadyTime start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  Report report_;
  std::vector<double> took_ms_;
  std::map<uint32_t, Last> last_;
};

}  // namespace unpin::interop
