// SPDX-License-Identifier: Apache-2.0
#include "userspace/monitor/health_monitor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr uint64_t kInbox = UINT64_MAX;  // tells the queue from a backend's socket

}  // namespace

absl::StatusOr<std::unique_ptr<HealthMonitor>> HealthMonitor::Create(OnResult on_result) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "create an epoll descriptor for health probes");
  auto inbox = std::make_shared<Inbox>();
  inbox->wake = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!inbox->wake.valid())
    return ErrnoStatus(errno, "create an event descriptor for health probes");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kInbox;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, inbox->wake.get(), &event) != 0) {
    return ErrnoStatus(errno, "watch the results of health probes");
  }
  return std::unique_ptr<HealthMonitor>(
      new HealthMonitor(std::move(epoll), std::move(inbox), std::move(on_result)));
}

void HealthMonitor::SetTargets(std::vector<HealthTarget> targets) {
  absl::MutexLock lock(&inbox_->mutex);
  inbox_->targets = std::move(targets);
  ::eventfd_write(inbox_->wake.get(), 1);
}

void HealthMonitor::ProbeNow(BackendId backend) {
  absl::MutexLock lock(&inbox_->mutex);
  inbox_->urgent.push_back(backend);
  ::eventfd_write(inbox_->wake.get(), 1);
}

void HealthMonitor::Replace(const std::vector<HealthTarget>& targets, TimePoint now) {
  std::set<BackendId> wanted;
  for (const HealthTarget& target : targets) {
    wanted.insert(target.backend);
    Entry& entry = entries_[target.backend];
    if (entry.target == target) continue;
    entry = Entry{.target = target, .due = now, .last = {}, .probe = nullptr, .check = nullptr};
    if (target.settings.kind == HealthSettings::Kind::kGrpc)
      entry.check = std::make_unique<GrpcCheck>(target);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !wanted.contains(entry.first); });
}

double HealthMonitor::Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

void HealthMonitor::Begin(Entry& entry, TimePoint now) {
  entry.is_urgent = false;
  entry.last.begun = now;
  entry.due = NextProbe(entry.last, entry.target.settings, Chance());
  entry.probe = std::make_unique<Probe>(entry.target, now);
  if (entry.probe->is_done()) return Advance(entry);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  event.data.u64 = entry.target.backend;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.probe->fd(), &event) != 0) {
    entry.probe.reset();  // it says nothing about the backend; the next one is due soon
  }
}

// The connection has come to its end, one way or the other.
void HealthMonitor::Advance(Entry& entry) {
  const std::optional<ProbeResult> result = entry.probe->result();
  entry.probe.reset();
  if (!result || !result->ok() || !entry.check) return Finish(entry, result);
  entry.checking = ++checks_;
  entry.check->Start([inbox = inbox_, check = entry.checking](const ProbeResult& answer) {
    absl::MutexLock lock(&inbox->mutex);
    inbox->results.emplace_back(check, answer);
    ::eventfd_write(inbox->wake.get(), 1);
  });
}

void HealthMonitor::Finish(Entry& entry, const std::optional<ProbeResult>& result) {
  entry.checking = 0;
  if (!result) return;
  entry.last.failures = result->ok() ? 0 : entry.last.failures + 1;
  if (entry.check && !result->ok()) entry.check->Reconnect();
  // One that was asked for meanwhile stays due.
  if (!entry.is_urgent) entry.due = NextProbe(entry.last, entry.target.settings, Chance());
  on_result_(*result);
}

void HealthMonitor::Collect(TimePoint now) {
  eventfd_t count;
  ::eventfd_read(inbox_->wake.get(), &count);
  std::optional<std::vector<HealthTarget>> targets;
  std::vector<BackendId> urgent;
  std::vector<std::pair<uint64_t, ProbeResult>> results;
  {
    absl::MutexLock lock(&inbox_->mutex);
    targets.swap(inbox_->targets);
    urgent.swap(inbox_->urgent);
    results.swap(inbox_->results);
  }
  if (targets) Replace(*targets, now);
  for (const BackendId backend : urgent) {
    if (const auto entry = entries_.find(backend); entry != entries_.end()) {
      entry->second.due = now;
      entry->second.is_urgent = true;
    }
  }
  for (const auto& [check, result] : results) {
    // An answer for a target that has changed meanwhile is of the old one.
    const auto entry = entries_.find(result.backend);
    if (entry != entries_.end() && entry->second.checking == check) Finish(entry->second, result);
  }
}

absl::Status HealthMonitor::OnReadable(TimePoint now) {
  std::array<epoll_event, 64> events;
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "wait for health probes");
  for (int i = 0; i < ready; ++i) {
    if (events[i].data.u64 == kInbox) {
      Collect(now);
      continue;
    }
    const auto entry = entries_.find(static_cast<BackendId>(events[i].data.u64));
    if (entry == entries_.end() || !entry->second.probe) continue;
    if (entry->second.probe->OnReady() == Probe::Step::kDone) Advance(entry->second);
  }
  return absl::OkStatus();
}

void HealthMonitor::Tick(TimePoint now) {
  for (auto& [backend, entry] : entries_) {
    if (entry.probe && entry.probe->deadline() <= now) {
      entry.probe->OnDeadline();
      Advance(entry);
    }
    // One that falls due while the last is not over begins when that is.
    if (entry.due <= now && !entry.is_busy()) Begin(entry, now);
  }
}

TimePoint HealthMonitor::NextDue() const {
  TimePoint next = TimePoint::max();
  for (const auto& [backend, entry] : entries_) {
    if (entry.probe)
      next = std::min(next, entry.probe->deadline());
    else if (!entry.is_busy())
      next = std::min(next, entry.due);
  }
  return next;
}

}  // namespace unpin
