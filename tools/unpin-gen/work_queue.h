// SPDX-License-Identifier: Apache-2.0
// A WorkerPool that runs in real time, and a timer, on one thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tools/unpin-gen/worker_pool.h"

namespace unpin::gen {

// Thread-safe. Jobs run on its thread, without its lock, and must not block.
class WorkQueue {
 public:
  WorkQueue(size_t workers, Duration service_time);
  ~WorkQueue();  // jobs not yet due are dropped
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Runs `job` after a worker has spent the service time (or `own_time`) on it. If that is zero, at once and
  // on the caller's thread: no queue, no worker.
  void Submit(std::optional<Duration> own_time, Job job);

  // Runs `job` at `when`, beside the workers.
  void RunAt(TimePoint when, Job job);

  // From now on every job, also those waiting, is due at once.
  void Flush();

  void SetWorkers(size_t workers);
  void SetServiceTime(Duration service_time);

  struct State {
    size_t workers = 0;
    Duration service_time{0};
    size_t unanswered = 0;
    WorkerPool::Usage usage;  // jobs answered at once included
  };
  State GetState();

 private:
  void Run();
  std::vector<Job> TakeDue(TimePoint now);
  std::optional<TimePoint> NextDue() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  WorkerPool pool_;
  std::multimap<TimePoint, Job> timers_;
  uint64_t answered_at_once_ = 0;
  bool flushing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace unpin::gen
