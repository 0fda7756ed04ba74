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

}  // namespace

LoadTracker::Entry LoadTracker::Next(const Entry* before, const Connection& connection,
                                     TimePoint now) {
  Entry entry = {.created = connection.created,
                 .seen = now,
                 .streams = connection.streams_begun,
                 .bytes = BytesOf(connection),
                 .rates = {}};
  const bool is_known = before != nullptr && before->created == connection.created;
  const double seconds = Seconds(now - (is_known ? before->seen : connection.created));
  if (seconds <= 0) return is_known ? *before : entry;
  const Rates now_rates = {
      .requests_per_second = (entry.streams - (is_known ? before->streams : 0)) / seconds,
      .bytes_per_second = (entry.bytes - (is_known ? before->bytes : 0)) / seconds};
  if (!is_known) {
    entry.rates = now_rates;
    return entry;
  }
  const double weight = 1 - std::exp(-seconds / Seconds(kTimeConstant));
  const auto smooth = [&](double old, double fresh) { return old + weight * (fresh - old); };
  entry.rates = {
      .requests_per_second =
          smooth(before->rates.requests_per_second, now_rates.requests_per_second),
      .bytes_per_second = smooth(before->rates.bytes_per_second, now_rates.bytes_per_second)};
  return entry;
}

void LoadTracker::Update(std::span<const Connection> connections, TimePoint now) {
  absl::flat_hash_map<ConnectionKey, Entry> next;
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
    ++services_[connection.service];
  }
  entries_ = std::move(next);
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

}  // namespace unpin
