// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "userspace/base/status.h"

namespace unpin {

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "create an epoll descriptor");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "create an event descriptor");
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake)));
  const int fd = loop->wake_.get();
  absl::Status status = loop->Watch(fd, [fd] {
    eventfd_t count;
    ::eventfd_read(fd, &count);
  });
  if (!status.ok()) return status;
  return loop;
}

absl::Status EventLoop::Watch(int fd, std::function<void()> on_readable) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = handlers_.size();
  handlers_.push_back(std::move(on_readable));
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "watch a descriptor");
}

void EventLoop::Wake() { ::eventfd_write(wake_.get(), 1); }

absl::Status EventLoop::Run(const std::function<TimePoint(TimePoint)>& next_due,
                            const std::function<void(TimePoint)>& tick) {
  std::array<epoll_event, 16> events;
  while (!stopped_) {
    const TimePoint now = Now();
    const Duration left = std::max(Duration::zero(), next_due(now) - now);
    // Rounded up: a millisecond too early would spin.
    const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                   static_cast<int>(std::min<long>(timeout, 60000)));
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "wait for events");
    for (int i = 0; i < ready; ++i) handlers_[events[i].data.u64]();
    if (const TimePoint later = Now(); next_due(later) <= later) tick(later);
  }
  return absl::OkStatus();
}

}  // namespace unpin
