// SPDX-License-Identifier: Apache-2.0
// Probes backends, each at its own jittered pace, and hands the results to the agent's thread.
//
// One thread watches fd() and calls OnReadable() and Tick(), and hears the results. What other threads bring, new targets
// and the results of gRPC calls, waits in a queue behind fd().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "userspace/base/clock.h"
#include "userspace/base/unique_fd.h"
#include "userspace/model/health.h"
#include "userspace/monitor/grpc_check.h"
#include "userspace/monitor/probe.h"
#include "userspace/policy/probe_pace.h"

namespace unpin {

class HealthMonitor {
 public:
  using OnResult = std::function<void(const ProbeResult&)>;

  static absl::StatusOr<std::unique_ptr<HealthMonitor>> Create(OnResult on_result);

  // All there are to probe from now on; new ones begin at once. Any thread.
  void SetTargets(std::vector<HealthTarget> targets);
  // The next probe of this backend is due now. Any thread.
  void ProbeNow(BackendId backend);

  int fd() const { return epoll_.get(); }
  absl::Status OnReadable(TimePoint now);
  void Tick(TimePoint now);
  TimePoint NextDue() const;

 private:
  struct Entry {
    HealthTarget target;
    TimePoint due;
    ProbeRecord last;
    std::unique_ptr<Probe> probe;      // a connection under way
    std::unique_ptr<GrpcCheck> check;  // kGrpc: asked once the connection stands
    uint64_t checking = 0;             // the gRPC call under way
    bool is_urgent = false;            // `due` was brought forward by ProbeNow()

    bool is_busy() const { return probe != nullptr || checking != 0; }
  };
  // What other threads bring.
  struct Inbox {
    absl::Mutex mutex;
    std::optional<std::vector<HealthTarget>> targets ABSL_GUARDED_BY(mutex);
    std::vector<BackendId> urgent ABSL_GUARDED_BY(mutex);
    std::vector<std::pair<uint64_t, ProbeResult>> results ABSL_GUARDED_BY(mutex);  // by check
    UniqueFd wake;
  };

  HealthMonitor(UniqueFd epoll, std::shared_ptr<Inbox> inbox, OnResult on_result)
      : epoll_(std::move(epoll)),
        inbox_(std::move(inbox)),
        on_result_(std::move(on_result)),
        random_(std::random_device{}()) {}

  void Begin(Entry& entry, TimePoint now);
  void Finish(Entry& entry, const std::optional<ProbeResult>& result);
  void Advance(Entry& entry);
  double Chance();
  void Collect(TimePoint now);
  void Replace(const std::vector<HealthTarget>& targets, TimePoint now);

  UniqueFd epoll_;
  std::shared_ptr<Inbox> inbox_;
  OnResult on_result_;
  std::minstd_rand random_;
  std::map<BackendId, Entry> entries_;
  uint64_t checks_ = 0;
};

}  // namespace unpin
