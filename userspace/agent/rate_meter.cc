// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/rate_meter.h"

#include <cmath>

namespace unpin {
namespace {

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double PerSecond(uint64_t before, uint64_t after, double seconds) {
  return after > before ? static_cast<double>(after - before) / seconds : 0;
}

}  // namespace

void RateMeter::Observe(std::span<const Connection> connections, TimePoint now) {
  absl::flat_hash_map<ConnectionKey, Seen> next;
  next.reserve(connections.size());
  for (const Connection& connection : connections) {
    const auto it = seen_.find(connection.key);
    const bool known = it != seen_.end() && it->second.created == connection.created;
    next.emplace(connection.key, Next(known ? &it->second : nullptr, connection, now));
  }
  seen_ = std::move(next);
}

RateMeter::Seen RateMeter::Next(const Seen* previous, const Connection& connection, TimePoint now) {
  const Seen birth = {.created = connection.created, .at = connection.created, .rates = {}};
  const Seen& before = previous != nullptr ? *previous : birth;
  const double elapsed = InSeconds(now - before.at);
  if (elapsed <= 0) return before;

  Seen after = {.created = connection.created,
                .at = now,
                .requests = connection.streams_begun,
                .bytes = connection.bytes_to_server + connection.bytes_to_client,
                .rates = {}};
  const double weight = previous == nullptr ? 1 : 1 - std::exp(-elapsed / InSeconds(kTimeConstant));
  const auto smooth = [&](double old_rate, double rate) {
    return old_rate + weight * (rate - old_rate);
  };
  after.rates.requests_per_second =
      smooth(before.rates.requests_per_second, PerSecond(before.requests, after.requests, elapsed));
  after.rates.bytes_per_second =
      smooth(before.rates.bytes_per_second, PerSecond(before.bytes, after.bytes, elapsed));
  return after;
}

Rates RateMeter::Of(const Connection& connection) const {
  const auto it = seen_.find(connection.key);
  if (it == seen_.end() || it->second.created != connection.created) return {};
  return it->second.rates;
}

}  // namespace unpin
