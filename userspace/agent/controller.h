// SPDX-License-Identifier: Apache-2.0
// The one place of state: what is wanted, what the data plane was told, which moves are under way. gRPC threads call the
// operations, the event loop calls OnEvent() and Tick(); one lock orders them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "userspace/agent/broadcast.h"
#include "userspace/agent/config.h"
#include "userspace/agent/drains.h"
#include "userspace/agent/id_registry.h"
#include "userspace/agent/load_tracker.h"
#include "userspace/agent/operations.h"
#include "userspace/agent/table_sync.h"
#include "userspace/model/health.h"
#include "userspace/model/ports.h"
#include "userspace/policy/cool_downs.h"
#include "userspace/policy/health_state.h"
#include "userspace/policy/outlier.h"
#include "userspace/policy/plan_moves.h"
#include "userspace/policy/rebalance_gate.h"
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
  struct Hooks {
    std::function<void()> wake;  // the event loop: NextDue() may be earlier now
    std::function<void(const std::vector<Endpoint>&)> backends_changed;
    std::function<std::map<std::string, uint64_t>()> counters;  // of the rest of the agent
    std::function<void(const std::vector<HealthTarget>&)>
        targets_changed;                   // all there are to probe
    std::function<void(BackendId)> probe;  // this one at once
  };

  // `facts`: the part of the status that does not change. `first_move`: ids of moves count up from it.
  Controller(const Ports& ports, Hooks hooks, StatusView facts, uint32_t maglev_slots,
             MoveId first_move);

  // Adopts what the data plane holds, brings it to what is wanted and resumes GOAWAYs not yet acknowledged. Once.
  absl::Status Start(const Config& config, TimePoint now);
  // A changed configuration file; on error the running one stays, whole.
  absl::Status Reload(const Config& config, TimePoint now);

  void OnEvent(const FlowEvent& event, TimePoint now);
  absl::Status OnProbe(const ProbeResult& result, TimePoint now);
  // What is due: resends, drains, expiry. Does all it can and returns the first error.
  absl::Status Tick(TimePoint now);
  TimePoint NextDue(TimePoint now);

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
  absl::StatusOr<RebalanceView> Rebalance(const RebalanceOrder& order) override;
  absl::StatusOr<CountersView> GetCounters() override;
  std::shared_ptr<EventQueue> Watch(bool connections) override;

 private:
  // --- controller.cc: what is wanted ---
  // Brings the data plane and the store to `desired`, or leaves everything as it is.
  absl::Status Commit(const Desired& desired, const Settings& settings, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Install(const Desired& desired, const IdRegistry& ids, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Desired> EditBackend(const std::string& service, const Endpoint& backend,
                                      const std::function<void(BackendSpec&)>& edit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<BackendView> CommitBackend(const Desired& desired, const std::string& service,
                                            const Endpoint& backend, const char* event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetRetired(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- controller_health.cc: who is up ---
  Health HealthOf(const ServiceSpec& service, BackendId id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<BackendId> AwaitNewcomers(const Desired& desired, const IdRegistry& ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateDrains(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BackendStates StatesOf(const Desired& desired, const IdRegistry& ids, TimePoint now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings the tables to who is up and not ejected now; connections of those that went down are reset.
  absl::Status ApplyStates(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AbandonConnectionsOf(const std::vector<BackendId>& backends, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<HealthTarget> TargetsOf(const Desired& desired) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status JudgeOutliers(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SetRooms() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsEjected(const std::string& service, BackendId id, TimePoint now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- controller_rebalance.cc: who is moved ---
  struct Question;
  absl::Status StepRebalance(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Question QuestionOf(const std::string& service, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RebalanceService(const std::string& service, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t CarryOut(const Question& question, const Plan& plan, uint32_t budget, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportElephants(const Question& question, const Plan& plan, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveAged(const std::string& service, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hurry(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsRebalancing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- controller_views.cc: what is shown ---
  absl::Status Scan(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ServiceView ViewOf(const ServiceWithBackends& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BackendView ViewOf(const std::string& service, const BackendSpec& backend) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BackendView::State StateOf(const std::string& service, const BackendSpec& backend,
                             BackendId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The backend's load as a multiple of its share; 0 if it has none.
  double ShareOf(const std::string& service, BackendId id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<BackendView> RemovedBackends() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MoveView ViewOf(const Move& move) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NameOf(ServiceId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Endpoint EndpointOf(BackendId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- controller_moves.cc: what is done ---
  absl::StatusOr<Connection> FindConnection(const MoveOrder& order, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<BackendId> ChooseTarget(const Connection& connection, const MoveOrder& order)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<BackendId> PickTargetFor(const Connection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<MoveId> StartMove(const Connection& connection, BackendId to, MoveReason reason,
                                   TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StepDrains(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EnforceDrainDeadlines(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishMoves(TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishConnection(const FlowEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(std::string type, const std::string& service, std::string message, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Ports ports_;
  const Hooks hooks_;
  const StatusView facts_;

  absl::Mutex mutex_;
  Settings settings_ ABSL_GUARDED_BY(mutex_);
  Desired desired_ ABSL_GUARDED_BY(mutex_);
  IdRegistry ids_ ABSL_GUARDED_BY(mutex_);
  TableSync sync_ ABSL_GUARDED_BY(mutex_);
  Mover mover_ ABSL_GUARDED_BY(mutex_);
  Drains drains_ ABSL_GUARDED_BY(mutex_);
  LoadTracker loads_ ABSL_GUARDED_BY(mutex_);
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);  // as of scanned_
  TimePoint scanned_ ABSL_GUARDED_BY(mutex_);
  TimePoint looked_at_ ABSL_GUARDED_BY(mutex_);  // somebody wants rates
  TimePoint housekeeping_due_ ABSL_GUARDED_BY(mutex_);
  Flows::Occupancy occupancy_ ABSL_GUARDED_BY(mutex_);
  Broadcast broadcast_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> moves_by_end_ ABSL_GUARDED_BY(mutex_);
  std::map<BackendId, HealthState> health_ ABSL_GUARDED_BY(mutex_);
  std::map<BackendId, std::string> trouble_
      ABSL_GUARDED_BY(mutex_);  // what the last failed probe said
  std::map<std::string, Outlier> outliers_ ABSL_GUARDED_BY(mutex_);  // by service
  TimePoint ejection_ends_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();
  std::map<std::string, RebalanceGate> gates_ ABSL_GUARDED_BY(mutex_);    // by service
  std::map<ConnectionKey, TimePoint> elephants_ ABSL_GUARDED_BY(mutex_);  // when they were reported
  CoolDowns cool_downs_ ABSL_GUARDED_BY(mutex_);
  std::set<BackendId> capped_ ABSL_GUARDED_BY(mutex_);  // whose room was set
  uint64_t connections_reset_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint rebalance_due_ ABSL_GUARDED_BY(mutex_);
  TimePoint unsettled_since_ ABSL_GUARDED_BY(mutex_);  // backends have changed; no plan before settled_
  TimePoint settled_ ABSL_GUARDED_BY(mutex_);
  uint64_t expired_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace unpin
