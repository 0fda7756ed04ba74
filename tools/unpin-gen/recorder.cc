// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/recorder.h"

#include <algorithm>
#include <numeric>

namespace unpin::gen {
namespace {

double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

void Increment(std::vector<uint32_t>& counts, size_t index) {
  if (index >= counts.size()) counts.resize(index + 1);
  ++counts[index];
}

}  // namespace

Recorder::Recorder(std::vector<double> rates, Duration bucket, size_t expected_backends)
    : bucket_(bucket), expected_backends_(expected_backends) {
  for (const double rate : rates)
    connections_.push_back({.rate = rate, .peers = {}, .backends = {}});
}

Recorder::Bucket& Recorder::BucketAt(Duration scheduled) {
  const size_t index = scheduled / bucket_;
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  return buckets_[index];
}

void Recorder::Sent(size_t connection, Duration scheduled, Duration lag) {
  const std::lock_guard lock(mutex_);
  totals_.set_sent(totals_.sent() + 1);
  ++connections_[connection].sent;
  ++BucketAt(scheduled).sent;
  worst_lag_ = std::max(worst_lag_, lag);
}

void Recorder::Ended(const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (outcome.failure.empty()) {
    Succeeded(outcome);
  } else {
    Failed(outcome);
  }
}

void Recorder::Succeeded(const Outcome& outcome) {
  const auto [backend, is_new] = backend_index_.try_emplace(outcome.backend, backend_names_.size());
  if (is_new) backend_names_.push_back(outcome.backend);
  Increment(backend_counts_, backend->second);
  totals_.set_succeeded(totals_.succeeded() + 1);

  const Duration latency = std::max(outcome.ended - outcome.scheduled, Duration(0));
  latency_.Add(latency);

  Connection& connection = connections_[outcome.connection];
  ++connection.succeeded;
  connection.peers.insert(outcome.peer);
  Increment(connection.backends, backend->second);

  Bucket& bucket = BucketAt(outcome.scheduled);
  ++bucket.succeeded;
  bucket.latency_sum += latency;
  bucket.worst = std::max(bucket.worst, latency);
  Increment(bucket.backends, backend->second);
}

void Recorder::Failed(const Outcome& outcome) {
  const double scheduled = Seconds(outcome.scheduled);
  const double ended = Seconds(outcome.ended);
  const bool first = totals_.failed() == 0;

  totals_.set_failed(totals_.failed() + 1);
  ++connections_[outcome.connection].failed;
  ++BucketAt(outcome.scheduled).failed;
  ++(*failures_.mutable_by_code())[outcome.failure];
  failures_.set_first_scheduled_s(first ? scheduled
                                        : std::min(failures_.first_scheduled_s(), scheduled));
  failures_.set_last_scheduled_s(std::max(failures_.last_scheduled_s(), scheduled));
  failures_.set_last_ended_s(std::max(failures_.last_ended_s(), ended));
  if (static_cast<size_t>(failures_.events_size()) >= kMaxFailureEvents) return;

  v1::Failure& event = *failures_.add_events();
  event.set_scheduled_s(scheduled);
  event.set_ended_s(ended);
  event.set_connection(outcome.connection);
  event.set_code(outcome.failure);
  event.set_message(outcome.message);
}

Progress Recorder::GetProgress() const {
  const std::lock_guard lock(mutex_);
  Progress progress{.sent = totals_.sent(), .failed = totals_.failed(), .backends = {}};
  for (size_t i = 0; i < backend_names_.size(); ++i) {
    progress.backends.emplace_back(backend_names_[i], backend_counts_[i]);
  }
  std::sort(progress.backends.begin(), progress.backends.end());
  return progress;
}

double Recorder::MaxOverMean(const BackendCounts& counts) const {
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (sum == 0) return 0;
  const size_t backends = std::max(expected_backends_, backend_names_.size());
  return *std::max_element(counts.begin(), counts.end()) * backends / sum;
}

uint32_t Recorder::Reconnects(const Connection& connection) {
  return connection.peers.empty() ? 0 : connection.peers.size() - 1;
}

void Recorder::ReportBackends(v1::LoadReport& report) const {
  std::vector<size_t> order(backend_names_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [this](size_t a, size_t b) { return backend_names_[a] < backend_names_[b]; });
  for (const size_t i : order) {
    v1::BackendShare& share = *report.add_backends();
    share.set_name(backend_names_[i]);
    share.set_succeeded(backend_counts_[i]);
    share.set_share(static_cast<double>(backend_counts_[i]) / totals_.succeeded());
  }
  report.set_max_over_mean(MaxOverMean(backend_counts_));
}

void Recorder::ReportSeries(v1::LoadReport& report) const {
  report.set_bucket_s(Seconds(bucket_));
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    v1::Bucket& row = *report.add_series();
    row.set_begin_s(Seconds(bucket_ * i));
    row.set_sent(bucket.sent);
    row.set_succeeded(bucket.succeeded);
    row.set_failed(bucket.failed);
    if (bucket.succeeded > 0) row.set_mean_ms(Millis(bucket.latency_sum) / bucket.succeeded);
    row.set_worst_ms(Millis(bucket.worst));
    row.set_max_over_mean(MaxOverMean(bucket.backends));
    for (size_t b = 0; b < bucket.backends.size(); ++b) {
      if (bucket.backends[b] > 0) (*row.mutable_backends())[backend_names_[b]] = bucket.backends[b];
    }
  }
}

void Recorder::ReportConnections(v1::LoadReport& report) const {
  for (size_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    v1::ConnectionReport& row = *report.add_connections();
    row.set_index(i);
    row.set_rate_rps(connection.rate);
    row.set_sent(connection.sent);
    row.set_succeeded(connection.succeeded);
    row.set_failed(connection.failed);
    row.set_reconnects(Reconnects(connection));
    for (size_t b = 0; b < connection.backends.size(); ++b) {
      const uint32_t count = connection.backends[b];
      if (count > 0) (*row.mutable_backends())[backend_names_[b]] = count;
    }
  }
}

void Recorder::ReportLatency(v1::Latency& latency) const {
  latency.set_mean_ms(Millis(latency_.Mean()));
  latency.set_min_ms(Millis(latency_.min()));
  latency.set_p50_ms(Millis(latency_.Percentile(50)));
  latency.set_p90_ms(Millis(latency_.Percentile(90)));
  latency.set_p99_ms(Millis(latency_.Percentile(99)));
  latency.set_p999_ms(Millis(latency_.Percentile(99.9)));
  latency.set_worst_ms(Millis(latency_.max()));
  for (const Histogram::Bin& bin : latency_.Bins()) {
    v1::HistogramBin& row = *latency.add_histogram();
    row.set_upper_ms(Millis(bin.upper));
    row.set_count(bin.count);
  }
}

v1::LoadReport Recorder::Report(Duration duration) const {
  const std::lock_guard lock(mutex_);
  v1::LoadReport report;
  report.set_duration_s(Seconds(duration));
  *report.mutable_totals() = totals_;
  for (const Connection& connection : connections_) {
    report.mutable_totals()->set_reconnects(report.totals().reconnects() + Reconnects(connection));
  }
  if (duration > Duration(0)) {
    report.mutable_totals()->set_succeeded_per_s(totals_.succeeded() / Seconds(duration));
  }
  ReportLatency(*report.mutable_latency());
  ReportBackends(report);
  ReportSeries(report);
  ReportConnections(report);
  *report.mutable_failures() = failures_;
  report.set_worst_send_lag_ms(Millis(worst_lag_));
  return report;
}

}  // namespace unpin::gen
