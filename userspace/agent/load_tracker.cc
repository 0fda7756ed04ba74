// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/load_tracker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace unpin {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

uint64_t BytesOf(const Connection& c) { return c.bytes_to_server + c.bytes_to_client; }

// The share of a new measurement of `seconds` in a mean that is `age` old, itself included.
double WeightOf(double seconds, double age, Duration time_constant) {
  return std::max(1 - std::exp(-seconds / Seconds(time_constant)), std::min(1.0, seconds / age));
}

double Mixed(double old, double fresh, double weight) { return old + weight * (fresh - old); }

}  // namespace

LoadTracker::Entry LoadTracker::Next(const Entry* before, const Connection& connection,
                                     TimePoint now) const {
  Entry entry = {.created = connection.created,
                 .since = connection.created,
                 .seen = now,
                 .streams = connection.streams_begun,
                 .ended = connection.streams_ended,
                 .bytes = BytesOf(connection),
                 .rates = {}};
  Entry start = {.created = connection.created,
                 .since = connection.created,
                 .seen = connection.created,
                 .rates = {}};
  if (before != nullptr && before->created == connection.created) {
    start = *before;
  } else if (const auto heir = heirs_.find(connection.key); heir != heirs_.end()) {
    start.since = heir->second.since;
    start.rates = heir->second.rates;
  }
  entry.since = start.since;
  entry.rates = start.rates;
  const double seconds = Seconds(now - start.seen);
  if (seconds <= 0) return entry;
  entry.rates.measured_for = now - entry.since;
  const double weight = WeightOf(seconds, Seconds(entry.rates.measured_for), kTimeConstant);
  const double streams =
      static_cast<double>(entry.streams - std::min(entry.streams, start.streams));
  const double bytes = static_cast<double>(entry.bytes - std::min(entry.bytes, start.bytes));
  entry.rates.requests_per_second =
      Mixed(start.rates.requests_per_second, streams / seconds, weight);
  entry.rates.bytes_per_second = Mixed(start.rates.bytes_per_second, bytes / seconds, weight);
  entry.rates.open_streams =
      Mixed(start.rates.open_streams, static_cast<double>(connection.open_streams()),
            WeightOf(seconds, Seconds(entry.rates.measured_for), kStreamsTimeConstant));
  return entry;
}

void LoadTracker::Update(std::span<const Connection> connections, TimePoint now) {
  absl::flat_hash_map<ConnectionKey, Entry> next;
  next.reserve(connections.size());
  backends_.clear();
  services_.clear();
  for (const Connection& connection : connections) {
    if (connection.closed) continue;
    const auto before = entries_.find(connection.key);
    const Entry entry = Next(before == entries_.end() ? nullptr : &before->second, connection, now);
    next[connection.key] = entry;
    BackendLoad& load = backends_[connection.backend];
    ++load.connections;
    load.open_streams += connection.open_streams();
    load.rates.requests_per_second += entry.rates.requests_per_second;
    load.rates.bytes_per_second += entry.rates.bytes_per_second;
    load.rates.open_streams += entry.rates.open_streams;
    ++services_[connection.service];
    const bool is_known = before != entries_.end() && before->second.created == connection.created;
    if (is_known)
      trends_[connection.backend].ended +=
          static_cast<double>(entry.ended - std::min(entry.ended, before->second.ended));
  }
  entries_ = std::move(next);
  absl::erase_if(heirs_, [&](const auto& heir) {
    return entries_.contains(heir.first) || now - heir.second.seen > kTimeConstant;
  });
  UpdateTrends(now);
}

void LoadTracker::UpdateTrends(TimePoint now) {
  for (const auto& [backend, load] : backends_) trends_.try_emplace(backend);
  for (auto& [backend, trend] : trends_) {
    BackendLoad& load = backends_[backend];
    const double seconds = Seconds(now - trend.seen);
    const double weight = 1 - std::exp(-std::min(seconds, 60.0) / Seconds(kStreamsTimeConstant));
    if (trend.seen != TimePoint() && seconds > 0 && (load.open_streams > 0 || trend.ended > 0)) {
      trend.open = Mixed(trend.open, static_cast<double>(load.open_streams), weight);
      trend.completions = Mixed(trend.completions, trend.ended / seconds, weight);
    }
    trend.seen = now;
    trend.ended = 0;
    load.mean_open = trend.open;
    load.completions_per_second = trend.completions;
  }
}

void LoadTracker::Succeed(const ConnectionKey& old, const ConnectionKey& next, TimePoint now) {
  const auto found = entries_.find(old);
  if (found == entries_.end()) return;
  const Rates rates = std::exchange(found->second.rates, {});
  const TimePoint since = std::exchange(found->second.since, now);
  // It may have been seen already: what was measured in these milliseconds is next to nothing.
  const auto seen = entries_.find(next);
  Entry& heir = seen == entries_.end() ? heirs_[next] : seen->second;
  heir.since = since;
  heir.rates = rates;
  if (seen == entries_.end()) heir.seen = now;
}

LoadTracker::Rates LoadTracker::RatesOf(const Connection& connection) const {
  const auto found = entries_.find(connection.key);
  return found == entries_.end() ? Rates{} : found->second.rates;
}

LoadTracker::BackendLoad LoadTracker::LoadOf(BackendId backend) const {
  const auto found = backends_.find(backend);
  return found == backends_.end() ? BackendLoad{} : found->second;
}

uint64_t LoadTracker::ConnectionsOf(ServiceId service) const {
  const auto found = services_.find(service);
  return found == services_.end() ? 0 : found->second;
}

double LoadOf(const LoadTracker::Rates& rates, LoadSignal signal) {
  switch (signal) {
    case LoadSignal::kRequests:
      return rates.requests_per_second;
    case LoadSignal::kInflight:
      return rates.open_streams;
    case LoadSignal::kBytes:
      return rates.bytes_per_second;
  }
  return 0;
}

}  // namespace unpin
