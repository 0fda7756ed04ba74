// SPDX-License-Identifier: Apache-2.0
// The one place of the agent's state: what is desired, what is under way, and the order in which things are done.
// gRPC threads call the operations, the event loop calls Tick and OnEvent; one mutex serves them all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "userspace/agent/drainer.h"
#include "userspace/agent/id_registry.h"
#include "userspace/agent/operations.h"
#include "userspace/agent/rate_meter.h"
#include "userspace/agent/table_sync.h"
#include "userspace/agent/validate.h"
#include "userspace/model/ports.h"
#include "userspace/rebalance/mover.h"

namespace unpin {

class Controller final : public Operations {
 public:
  struct Ports {
    Tables& tables;
    Flows& flows;
    Splicer& splicer;
    Store& store;
  };
  struct Settings {
    DesiredLimits limits;
    ExpirySettings expiry;
    MoveSettings moves;
  };
  struct Surroundings {
    StatusView status;       // what does not change while the agent runs
    uint32_t slots = 65537;  // of a Maglev table
    MoveId first_move = 1;
    std::function<TimePoint()> clock = Now;
    std::function<void()> wake = [] {};  // NextTick() has moved: the event loop should look again
    std::function<std::map<std::string, uint64_t>()> counters = [] {  // of other parts of the agent
      return std::map<std::string, uint64_t>();
    };
  };

  Controller(const Ports& ports, const Settings& settings, Surroundings surroundings);

  // Takes over what the data plane holds, makes it what `file` and the store say, and resumes unacknowledged moves.
  absl::Status Start(const Desired& file);
  // A new configuration file, whole or not at all.
  absl::Status Reload(const Desired& file, const Settings& settings);

  // What is due by now: resends, drains, expiry. Does all it can; returns the first error.
  absl::Status Tick();
  TimePoint NextTick();
  void OnEvent(const FlowEvent& event);

  absl::StatusOr<StatusView> GetStatus() override;
  absl::StatusOr<std::vector<ServiceView>> ListServices() override;
  absl::StatusOr<ServiceView> AddService(const ServiceSpec& spec) override;
  absl::Status RemoveService(const std::string& service) override;
  absl::StatusOr<std::vector<BackendView>> ListBackends(
      const std::optional<std::string>& service) override;
  absl::StatusOr<BackendView> AddBackend(const std::string& service,
                                         const BackendSpec& spec) override;
  absl::StatusOr<BackendView> SetBackendWeight(const std::string& service, Endpoint backend,
                                               uint32_t weight) override;
  absl::Status RemoveBackend(const std::string& service, Endpoint backend) override;
  absl::StatusOr<BackendView> DrainBackend(const std::string& service, Endpoint backend,
                                           Duration window) override;
  absl::StatusOr<BackendView> UndrainBackend(const std::string& service, Endpoint backend) override;
  absl::StatusOr<std::vector<ConnectionView>> ListConnections(
      const ConnectionFilter& filter) override;
  absl::StatusOr<MoveView> MoveConnection(const MoveOrder& order) override;
  absl::StatusOr<MoveView> FindMove(MoveId id) override;
  absl::StatusOr<std::vector<MoveView>> ListMoves(const std::optional<std::string>& service,
                                                  size_t limit) override;
  absl::StatusOr<CountersView> GetCounters() override;
  std::shared_ptr<EventQueue> Watch(bool connections) override;

 private:
  using Change = std::function<absl::Status(Desired&)>;
  struct Load {
    uint64_t connections = 0;
    uint64_t open_streams = 0;
    Rates rates;
  };
  using Loads = std::map<BackendId, Load>;

  // Changes of what is desired (controller_changes.cc).
  absl::Status ChangeDesired(const Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ChangeBackend(const std::string& service, Endpoint backend,
                             const std::function<void(BackendSpec&)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Install(Desired next, const DesiredLimits& limits, bool save)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FollowDrains(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FreeRetired(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Moves (controller_moves.cc).
  absl::Status ResumeMoves(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Connection> FindConnection(const MoveOrder& order, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<BackendId> FindTarget(const MoveOrder& order, const Connection& connection,
                                       TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<BackendId> PickTargetFor(const Connection& connection, const Loads& loads)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TickDrains(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartDrainMoves(const Drainer::Due& due, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasTarget(BackendId from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellMoves() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Observation (controller_views.cc).
  absl::StatusOr<std::vector<Connection>> Scan(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Housekeeping(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Loads LoadsOf(const std::vector<Connection>& connections) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const ServiceWithBackends* FindDesired(ServiceId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<BackendView> ViewOf(const std::string& service, Endpoint backend)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BackendView ViewOf(const IdRegistry::Backend& backend, const Loads& loads) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MoveView ViewOf(const Move& move) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string ServiceName(ServiceId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string BackendName(BackendId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Endpoint BackendEndpoint(BackendId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(std::string type, std::string service, std::string message,
            std::optional<MoveView> move = std::nullopt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Push(const Event& event, bool of_connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Surroundings surroundings_;
  absl::Mutex mutex_;
  Flows& flows_ ABSL_GUARDED_BY(mutex_);
  Splicer& splicer_ ABSL_GUARDED_BY(mutex_);
  Store& store_ ABSL_GUARDED_BY(mutex_);
  Tables& tables_ ABSL_GUARDED_BY(mutex_);
  Settings settings_ ABSL_GUARDED_BY(mutex_);
  Desired desired_ ABSL_GUARDED_BY(mutex_);
  IdRegistry ids_ ABSL_GUARDED_BY(mutex_);
  TableSync sync_ ABSL_GUARDED_BY(mutex_);
  Mover mover_ ABSL_GUARDED_BY(mutex_);
  Drainer drainer_ ABSL_GUARDED_BY(mutex_);
  RateMeter meter_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<EventQueue>> watchers_ ABSL_GUARDED_BY(mutex_);
  std::map<MoveState, uint64_t> moves_by_state_ ABSL_GUARDED_BY(mutex_);
  Loads drain_loads_ ABSL_GUARDED_BY(mutex_);  // of the last scan for a drain
  Flows::Occupancy occupancy_ ABSL_GUARDED_BY(mutex_);
  uint64_t expired_flows_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint next_housekeeping_ ABSL_GUARDED_BY(mutex_);
  TimePoint last_scan_ ABSL_GUARDED_BY(mutex_);
  std::optional<TimePoint> last_looked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace unpin
