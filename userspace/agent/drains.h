// SPDX-License-Identifier: Apache-2.0
// Which backends are being drained, and how many of their connections to move now. Pure: time is an argument.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "userspace/model/connection.h"
#include "userspace/policy/drain_pace.h"

namespace unpin {

class Drains {
 public:
  static constexpr Duration kStep = std::chrono::milliseconds(20);
  // Once the window is over, what could not be moved yet (too young, out of sync) is tried this often.
  static constexpr Duration kRetry = std::chrono::milliseconds(200);

  struct Drain {
    TimePoint since;
    TimePoint window_ends;
    TimePoint due;
    bool done = false;  // nothing left that a GOAWAY could move
  };

  void Begin(BackendId backend, Duration window, TimePoint now) {
    drains_[backend] = {.since = now, .window_ends = now + window, .due = now, .done = false};
  }
  void End(BackendId backend) { drains_.erase(backend); }

  std::optional<TimePoint> Since(BackendId backend) const {
    const auto found = drains_.find(backend);
    if (found == drains_.end()) return std::nullopt;
    return found->second.since;
  }

  std::optional<TimePoint> NextDue() const {
    std::optional<TimePoint> next;
    for (const auto& [backend, drain] : drains_) {
      if (!drain.done && (!next || drain.due < *next)) next = drain.due;
    }
    return next;
  }

  std::vector<BackendId> Due(TimePoint now) const {
    std::vector<BackendId> due;
    for (const auto& [backend, drain] : drains_) {
      if (!drain.done && drain.due <= now) due.push_back(backend);
    }
    return due;
  }

  // Of `movable` connections, how many to move in this step. `later`: others that may become movable.
  size_t Step(BackendId backend, size_t movable, size_t later, TimePoint now) {
    Drain& drain = drains_.at(backend);
    const Duration left = drain.window_ends - now;
    drain.due = now + (left > Duration::zero() && movable > 0 ? kStep : kRetry);
    drain.done = movable == 0 && later == 0;
    return MovesDue(movable, left, kStep);
  }

 private:
  std::map<BackendId, Drain> drains_;
};

}  // namespace unpin
