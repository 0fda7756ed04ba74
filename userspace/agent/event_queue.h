// SPDX-License-Identifier: Apache-2.0
// One watcher's events on their way from the controller to whoever reads them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "userspace/base/clock.h"
#include "userspace/model/move.h"

namespace unpin {

// A move as an operator sees it: with names and addresses instead of ids.
struct MoveView {
  Move move;
  std::string service;
  Endpoint from;
  Endpoint to;
};

struct Event {
  TimePoint time;
  std::string
      type;  // "move-planned", "move-acknowledged", "connection-opened", "backend-added", ...
  std::string service;
  std::string message;  // one line for a person
  std::optional<MoveView> move;
};

// Thread-safe. Push never blocks, so the controller may push under its lock: a reader that is too
// slow loses the oldest events and is told how many by an event of type "events-dropped".
class EventQueue {
 public:
  explicit EventQueue(bool connections, size_t capacity = 4096)
      : connections_(connections), capacity_(capacity) {}

  // Whether the reader also wants each connection opened and closed.
  bool wants_connections() const { return connections_; }

  void Push(Event event) {
    absl::MutexLock lock(&mutex_);
    if (events_.size() == capacity_) {
      events_.pop_front();
      ++dropped_;
    }
    events_.push_back(std::move(event));
  }

  // The oldest event; nothing if none came within `timeout`.
  std::optional<Event> Pop(Duration timeout) {
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(this, &EventQueue::HasEvent),
                                 absl::FromChrono(timeout))) {
      return std::nullopt;
    }
    if (dropped_ > 0) return TakeDropNotice();
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  bool HasEvent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !events_.empty(); }

  Event TakeDropNotice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t dropped = std::exchange(dropped_, 0);
    return Event{.time = events_.front().time,
                 .type = "events-dropped",
                 .service = "",
                 .message = absl::StrCat(dropped, " events were dropped: the reader is too slow"),
                 .move = std::nullopt};
  }

  const bool connections_;
  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace unpin
