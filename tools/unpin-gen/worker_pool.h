// SPDX-License-Identifier: Apache-2.0
// A backend's capacity: W workers that each take a service time a job, and a queue before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "userspace/base/clock.h"

namespace unpin::gen {

using Job = std::function<void()>;

// Pure: time is an argument, and must not run backwards. Jobs are started in order of submission.
class WorkerPool {
 public:
  // Requires workers > 0.
  WorkerPool(size_t workers, Duration service_time)
      : workers_(workers), service_time_(service_time) {}

  // `own_time` overrides the pool's service time, which counts as of the moment a worker takes the job up.
  void Submit(TimePoint now, std::optional<Duration> own_time, Job job);

  // When TakeEnded() will next have something to return, if ever.
  std::optional<TimePoint> NextEnd() const;

  // The jobs that have ended by `now`, in order of their end.
  std::vector<Job> TakeEnded(TimePoint now);

  // Everything submitted and not taken yet, ended or not; their remaining work is not accounted.
  std::vector<Job> TakeAll(TimePoint now);

  // Fewer workers: those over the number finish what they have.
  void SetWorkers(TimePoint now, size_t workers);
  void SetServiceTime(Duration service_time) { service_time_ = service_time; }

  size_t workers() const { return workers_; }
  Duration service_time() const { return service_time_; }
  size_t queued() const { return waiting_.size(); }
  size_t unanswered() const { return waiting_.size() + running_.size() + ended_.size(); }

  // Until `now`: the jobs that have ended, and the time spent on jobs by all workers together.
  struct Usage {
    uint64_t ended = 0;
    Duration busy{0};
  };
  Usage GetUsage(TimePoint now);

 private:
  struct Waiting {
    std::optional<Duration> own_time;
    Job job;
  };
  struct Running {
    TimePoint end;
    uint64_t order;  // ties end in order of their start
    Job job;
    bool operator>(const Running& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };

  void Settle(TimePoint now);
  void StartWaiting(TimePoint at);
  void Account(TimePoint at);

  size_t workers_;
  Duration service_time_;
  std::deque<Waiting> waiting_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<Job> ended_;
  uint64_t started_ = 0;
  Usage usage_;
  TimePoint accounted_;
};

}  // namespace unpin::gen
