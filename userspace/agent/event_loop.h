// SPDX-License-Identifier: Apache-2.0
// Waits for descriptors and for a point in time, on one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/base/clock.h"
#include "userspace/base/unique_fd.h"

namespace unpin {

class EventLoop {
 public:
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  // Calls `on_readable` whenever `fd` can be read. `fd` must outlive the loop.
  absl::Status Watch(int fd, std::function<void()> on_readable);

  // Makes Run() ask for the next due time again. Thread-safe.
  void Wake();

  // Until Stop(): handles what is readable, calls tick(now) when next_due(now) is reached.
  absl::Status Run(const std::function<TimePoint(TimePoint)>& next_due,
                   const std::function<void(TimePoint)>& tick);
  void Stop() { stopped_ = true; }

 private:
  EventLoop(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  UniqueFd epoll_;
  UniqueFd wake_;
  std::vector<std::function<void()>> handlers_;
  bool stopped_ = false;
};

}  // namespace unpin
