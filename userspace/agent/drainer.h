// SPDX-License-Identifier: Apache-2.0
// Which connections of draining backends to move now: each backend's spread over its window, those that cannot be
// moved yet (too young, out of sync just now) later. No I/O, no clock.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "userspace/model/connection.h"

namespace unpin {

class Drainer {
 public:
  struct Due {
    BackendId backend = 0;
    std::vector<Connection> connections;  // to be moved now
  };
  using IsMoving = std::function<bool(const ConnectionKey&)>;

  static constexpr Duration kStep = std::chrono::milliseconds(10);
  static constexpr Duration kScanBusy =
      std::chrono::milliseconds(100);  // while connections wait for their turn
  static constexpr Duration kScanIdle =
      std::chrono::seconds(1);  // when only those that never can are left
  static constexpr Duration kRetryAfter = std::chrono::seconds(1);  // a move that failed

  void Begin(BackendId backend, TimePoint now, Duration window);
  void End(BackendId backend) { drains_.erase(backend); }
  void EndAllBut(const std::function<bool(BackendId)>& keep);
  bool IsDraining(BackendId backend) const { return drains_.contains(backend); }
  std::optional<TimePoint> Since(BackendId backend) const;

  // When the controller should call again; nothing while nothing drains.
  std::optional<TimePoint> NextDue() const;
  // Whether a scan of the connections is due.
  bool WantsScan(TimePoint now) const;
  // Takes a scan. The backends that have lost their last open connection since the last one.
  std::vector<BackendId> Observe(std::span<const Connection> connections, const IsMoving& is_moving,
                                 TimePoint now);
  // Takes out what is due. `held` backends have nowhere to move connections to: they wait.
  std::vector<Due> TakeDue(TimePoint now, const std::function<bool(BackendId)>& held);

 private:
  struct Drain {
    TimePoint since;
    TimePoint window_end;
    TimePoint next_step;
    TimePoint next_scan;
    std::deque<Connection> waiting;
    bool pending = false;  // some may become movable soon
    bool empty = false;    // no open connection was seen
  };

  std::map<BackendId, Drain> drains_;
  std::map<ConnectionKey, TimePoint> tried_;
};

}  // namespace unpin
