// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/drainer.h"

#include <algorithm>

#include "userspace/policy/drain_pace.h"

namespace unpin {
namespace {

// Refusals that time heals.
bool MayBecomeMovable(Refusal refusal) {
  switch (refusal) {
    case Refusal::kUndecided:
    case Refusal::kTooYoung:
    case Refusal::kNoResponse:
    case Refusal::kBehind:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Drainer::Begin(BackendId backend, TimePoint now, Duration window) {
  const auto [it, fresh] = drains_.try_emplace(backend);
  Drain& drain = it->second;
  if (fresh) drain.since = now;
  drain.window_end = now + window;
  drain.next_step = now;
  drain.next_scan = now;
}

void Drainer::EndAllBut(const std::function<bool(BackendId)>& keep) {
  std::erase_if(drains_, [&](const auto& entry) { return !keep(entry.first); });
}

std::optional<TimePoint> Drainer::Since(BackendId backend) const {
  const auto it = drains_.find(backend);
  if (it == drains_.end()) return std::nullopt;
  return it->second.since;
}

std::optional<TimePoint> Drainer::NextDue() const {
  std::optional<TimePoint> next;
  for (const auto& [backend, drain] : drains_) {
    const TimePoint due =
        drain.waiting.empty() ? drain.next_scan : std::min(drain.next_step, drain.next_scan);
    if (!next || due < *next) next = due;
  }
  return next;
}

bool Drainer::WantsScan(TimePoint now) const {
  return std::ranges::any_of(drains_,
                             [&](const auto& entry) { return entry.second.next_scan <= now; });
}

std::vector<BackendId> Drainer::Observe(std::span<const Connection> connections,
                                        const IsMoving& is_moving, TimePoint now) {
  std::erase_if(tried_, [&](const auto& entry) { return now - entry.second >= kRetryAfter; });
  std::map<BackendId, bool> open;
  for (auto& [backend, drain] : drains_) {
    drain.waiting.clear();
    drain.pending = false;
  }
  for (const Connection& connection : connections) {
    const auto it = drains_.find(connection.backend);
    if (it == drains_.end() || connection.closed) continue;
    Drain& drain = it->second;
    open[connection.backend] = true;
    if (MayBecomeMovable(connection.refusal)) drain.pending = true;
    if (connection.refusal != Refusal::kNone || is_moving(connection.key)) continue;
    drain.pending = true;
    if (!tried_.contains(connection.key)) drain.waiting.push_back(connection);
  }
  std::vector<BackendId> emptied;
  for (auto& [backend, drain] : drains_) {
    const bool busy = drain.pending || now < drain.window_end;
    drain.next_scan = now + (busy ? kScanBusy : kScanIdle);
    const bool empty = !open.contains(backend);
    if (empty && !drain.empty) emptied.push_back(backend);
    drain.empty = empty;
  }
  return emptied;
}

std::vector<Drainer::Due> Drainer::TakeDue(TimePoint now,
                                           const std::function<bool(BackendId)>& held) {
  std::vector<Due> all;
  for (auto& [backend, drain] : drains_) {
    if (drain.waiting.empty() || drain.next_step > now) continue;
    drain.next_step = now + kStep;
    if (held(backend)) {
      drain.waiting.clear();  // the next scan brings them back
      continue;
    }
    const size_t due = MovesDue(drain.waiting.size(), drain.window_end - now, kStep);
    const auto end = drain.waiting.begin() + static_cast<std::ptrdiff_t>(due);
    for (auto it = drain.waiting.begin(); it != end; ++it) tried_[it->key] = now;
    all.push_back({.backend = backend, .connections = {drain.waiting.begin(), end}});
    drain.waiting.erase(drain.waiting.begin(), end);
  }
  return all;
}

}  // namespace unpin
