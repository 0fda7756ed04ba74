// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/worker_pool.h"

#include <utility>

namespace unpin::gen {

void WorkerPool::Account(TimePoint at) {
  usage_.busy += (at - accounted_) * running_.size();
  accounted_ = at;
}

void WorkerPool::StartWaiting(TimePoint at) {
  Account(at);
  while (!waiting_.empty() && running_.size() < workers_) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push({at + next.own_time.value_or(service_time_), started_++, std::move(next.job)});
  }
}

// A worker was free when its job ended, however late somebody looks: the capacity is exact.
void WorkerPool::Settle(TimePoint now) {
  while (!running_.empty() && running_.top().end <= now) {
    const TimePoint end = running_.top().end;
    Account(end);
    ended_.push_back(running_.top().job);
    running_.pop();
    ++usage_.ended;
    StartWaiting(end);
  }
  Account(now);
}

void WorkerPool::Submit(TimePoint now, std::optional<Duration> own_time, Job job) {
  Settle(now);
  waiting_.push_back({own_time, std::move(job)});
  StartWaiting(now);
}

std::optional<TimePoint> WorkerPool::NextEnd() const {
  if (!ended_.empty()) return TimePoint{};
  if (running_.empty()) return std::nullopt;
  return running_.top().end;
}

std::vector<Job> WorkerPool::TakeEnded(TimePoint now) {
  Settle(now);
  return std::exchange(ended_, {});
}

std::vector<Job> WorkerPool::TakeAll(TimePoint now) {
  std::vector<Job> jobs = TakeEnded(now);
  for (; !running_.empty(); running_.pop()) jobs.push_back(running_.top().job);
  for (Waiting& waiting : std::exchange(waiting_, {})) jobs.push_back(std::move(waiting.job));
  return jobs;
}

void WorkerPool::SetWorkers(TimePoint now, size_t workers) {
  Settle(now);
  workers_ = workers;
  StartWaiting(now);
}

WorkerPool::Usage WorkerPool::GetUsage(TimePoint now) {
  Settle(now);
  return usage_;
}

}  // namespace unpin::gen
