// SPDX-License-Identifier: Apache-2.0
// Everything the admin API asks of the agent, in model values. The controller implements it; tests
// of admin/ fake it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/agent/event_queue.h"
#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"
#include "userspace/model/connection.h"
#include "userspace/model/move.h"
#include "userspace/model/service.h"

namespace unpin {

struct InterfaceView {
  std::string name;
  std::string mode;         // "native", "generic"
  bool dispatcher = false;  // lives beside other programs through libxdp's dispatcher
};

struct StatusView {
  std::string version;
  std::string layout;
  TimePoint started;
  bool adopted = false;  // tables and programs were found running and taken over
  uint64_t connections = 0;
  uint64_t connection_capacity = 0;
  std::vector<InterfaceView> interfaces;
};

struct ServiceView {
  ServiceSpec spec;
  uint32_t backends = 0;
  uint64_t connections = 0;
};

struct BackendView {
  enum class State { kServing, kDraining, kRemoved, kDown, kEjected };
  std::string service;
  Endpoint endpoint;
  uint32_t weight = 0;  // as configured, also while draining
  State state = State::kServing;
  std::optional<TimePoint> draining_since;
  uint64_t connections = 0;
  uint64_t open_streams = 0;
  double requests_per_second = 0;
  double bytes_per_second = 0;  // both directions, TCP payload
  double mean_latency_seconds = 0;  // by Little's law; 0: not known
  double load_of_share = 0;         // in the service's signal: 1 is exactly its share
  std::string trouble;              // of kDown: what the last probe said
};

struct ConnectionView {
  Connection connection;
  std::string service;
  Endpoint backend;
  double requests_per_second = 0;
};

// What is set must hold.
struct ConnectionFilter {
  std::optional<std::string> service;
  std::optional<IpAddress> client;
  std::optional<uint16_t> client_port;
  std::optional<Endpoint> backend;
  std::optional<Protocol> protocol;
  std::optional<bool> spliceable;

  bool Matches(const ConnectionView& view) const {
    const Connection& c = view.connection;
    return (!service || *service == view.service) && (!client || *client == c.key.client.address) &&
           (!client_port || *client_port == c.key.client.port) &&
           (!backend || *backend == view.backend) && (!protocol || *protocol == c.protocol) &&
           (!spliceable || *spliceable == (c.refusal == Refusal::kNone));
  }
};

struct MoveOrder {
  Endpoint client;
  std::optional<std::string> service;  // unset: `client` has one connection only
  std::optional<Endpoint> target;      // unset: any other serving backend, by weight and load
};

struct RebalanceOrder {
  enum class Mode { kDryRun, kNow, kPause, kResume };
  Mode mode = Mode::kDryRun;
  std::optional<std::string> service;  // unset: of every service
};

struct PlannedView {
  std::string service;
  Endpoint client;
  Endpoint from;
  Endpoint to;
  double load = 0;                       // in the unit of the service's signal
  double load_before = 0, load_after = 0;  // of `from`, as a multiple of its share
};

struct RebalanceView {
  bool paused = false;
  std::vector<PlannedView> moves;      // what would be, or was, begun
  std::vector<std::string> remarks;    // per service: how even it is, what stands in the way, elephants by name
};

struct CountersView {
  std::map<std::string, uint64_t> verdicts;
  std::map<std::string, uint64_t> agent;
};

// Thread-safe. Syntax has been checked by the caller; whether names exist, are free, and the state
// allows it is decided here: NotFound, AlreadyExists, FailedPrecondition, ResourceExhausted. On
// error nothing has changed.
class Operations {
 public:
  virtual ~Operations() = default;

  virtual absl::StatusOr<StatusView> GetStatus() = 0;

  virtual absl::StatusOr<std::vector<ServiceView>> ListServices() = 0;
  virtual absl::StatusOr<ServiceView> AddService(const ServiceSpec& spec) = 0;
  virtual absl::Status RemoveService(const std::string& service) = 0;

  // NotFound if `service` is set and unknown; by service name, then endpoint.
  virtual absl::StatusOr<std::vector<BackendView>> ListBackends(
      const std::optional<std::string>& service) = 0;
  virtual absl::StatusOr<BackendView> AddBackend(const std::string& service,
                                                 const BackendSpec& spec) = 0;
  virtual absl::StatusOr<BackendView> SetBackendWeight(const std::string& service, Endpoint backend,
                                                       uint32_t weight) = 0;
  virtual absl::Status RemoveBackend(const std::string& service, Endpoint backend) = 0;
  // Moves every connection the backend has, spread over `window`.
  virtual absl::StatusOr<BackendView> DrainBackend(const std::string& service, Endpoint backend,
                                                   Duration window) = 0;
  virtual absl::StatusOr<BackendView> UndrainBackend(const std::string& service,
                                                     Endpoint backend) = 0;

  // Every open connection that matches, in any order (admin/ sorts and pages). NotFound if the
  // service is unknown.
  virtual absl::StatusOr<std::vector<ConnectionView>> ListConnections(
      const ConnectionFilter& filter) = 0;

  // Returns once the move has started (PLANNED or later); each later change is an Event with `move`
  // set, pushed after FindMove can see it.
  virtual absl::StatusOr<MoveView> MoveConnection(const MoveOrder& order) = 0;
  virtual absl::StatusOr<MoveView> FindMove(MoveId id) = 0;
  // Newest first, at most `limit`.
  virtual absl::StatusOr<std::vector<MoveView>> ListMoves(const std::optional<std::string>& service,
                                                          size_t limit) = 0;

  // NotFound if the service is unknown. kDryRun changes nothing; kNow waits for no hysteresis; pausing is for all services
  // and ends with the agent.
  virtual absl::StatusOr<RebalanceView> Rebalance(const RebalanceOrder& order) = 0;

  virtual absl::StatusOr<CountersView> GetCounters() = 0;

  // Every event from now on is pushed until the reader lets go of the queue: hold it by weak_ptr.
  virtual std::shared_ptr<EventQueue> Watch(bool connections) = 0;
};

}  // namespace unpin
