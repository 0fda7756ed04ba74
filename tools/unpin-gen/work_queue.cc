// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/work_queue.h"

#include <algorithm>

namespace unpin::gen {

WorkQueue::WorkQueue(size_t workers, Duration service_time)
    : pool_(workers, service_time), thread_([this] { Run(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WorkQueue::Submit(std::optional<Duration> own_time, Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!flushing_ && own_time.value_or(pool_.service_time()) > Duration(0)) {
      pool_.Submit(Now(), own_time, std::move(job));
      changed_.notify_one();
      return;
    }
    ++answered_at_once_;
  }
  job();
}

void WorkQueue::RunAt(TimePoint when, Job job) {
  const std::lock_guard lock(mutex_);
  timers_.emplace(when, std::move(job));
  changed_.notify_one();
}

void WorkQueue::Flush() {
  const std::lock_guard lock(mutex_);
  flushing_ = true;
  changed_.notify_one();
}

void WorkQueue::SetWorkers(size_t workers) {
  const std::lock_guard lock(mutex_);
  pool_.SetWorkers(Now(), workers);
  changed_.notify_one();
}

void WorkQueue::SetServiceTime(Duration service_time) {
  const std::lock_guard lock(mutex_);
  pool_.SetServiceTime(service_time);
}

WorkQueue::State WorkQueue::GetState() {
  const std::lock_guard lock(mutex_);
  State state{pool_.workers(), pool_.service_time(), pool_.unanswered(), pool_.GetUsage(Now())};
  state.usage.ended += answered_at_once_;
  changed_.notify_one();
  return state;
}

std::vector<Job> WorkQueue::TakeDue(TimePoint now) {
  std::vector<Job> due = flushing_ ? pool_.TakeAll(now) : pool_.TakeEnded(now);
  while (!timers_.empty() && (flushing_ || timers_.begin()->first <= now)) {
    due.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  return due;
}

std::optional<TimePoint> WorkQueue::NextDue() const {
  const std::optional<TimePoint> end = pool_.NextEnd();
  if (timers_.empty()) return end;
  return std::min(end.value_or(TimePoint::max()), timers_.begin()->first);
}

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::vector<Job> due = TakeDue(Now());
    if (!due.empty()) {
      lock.unlock();
      for (const Job& job : due) job();
      lock.lock();
    } else if (const std::optional<TimePoint> next = NextDue()) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace unpin::gen
