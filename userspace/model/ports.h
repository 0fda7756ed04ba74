// SPDX-License-Identifier: Apache-2.0
// The narrow interfaces behind which decisions meet the kernel and the disk. datapath/ and agent/ implement them,
// rebalance/ and agent/ use them, tests fake them. Not thread-safe: the controller calls them under its own lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/model/connection.h"
#include "userspace/model/move.h"
#include "userspace/model/service.h"

namespace unpin {

// A backend as the data plane holds it.
struct BackendRow {
  enum class State { kServing, kDraining, kDown };
  BackendId id = 0;
  ServiceId service = 0;
  Endpoint endpoint;
  State state = State::kServing;
  friend bool operator==(const BackendRow&, const BackendRow&) = default;
};

struct ServiceRow {
  ServiceId id = 0;
  Endpoint vip;
  bool snat = true;
  bool source_hash = false;     // Maglev hashes the client's address only
  uint32_t new_per_second = 0;  // new connections; 0: no limit
  friend bool operator==(const ServiceRow&, const ServiceRow&) = default;
};

// The data plane's tables. Ids are chosen by the controller; what an earlier agent left is read back first.
class Tables {
 public:
  virtual ~Tables() = default;
  virtual absl::StatusOr<std::vector<ServiceRow>> ReadServices() = 0;
  virtual absl::StatusOr<std::vector<BackendRow>> ReadBackends() = 0;
  virtual absl::Status PutBackend(const BackendRow& row) = 0;
  virtual absl::Status EraseBackend(BackendId id) = 0;
  // Installs the table whole (`slots` empty: no backend is up), then the service that uses it.
  virtual absl::Status PutService(const ServiceRow& row, std::span<const BackendId> slots) = 0;
  virtual absl::Status EraseService(const ServiceRow& row) = 0;
  // How many more connections the backend may take until this is called again; unset: any number.
  virtual absl::Status SetRoom(BackendId id, std::optional<uint32_t> room) = 0;
};

// What flows: a snapshot, and housekeeping.
class Flows {
 public:
  struct Occupancy {
    uint64_t flows = 0;     // both directions count
    uint64_t capacity = 0;
    uint64_t expired = 0;   // deleted by this walk
  };
  virtual ~Flows() = default;
  // Every connection in the table. `min_age` is only used for Connection::refusal.
  virtual absl::StatusOr<std::vector<Connection>> List(TimePoint now, Duration min_age) = 0;
  virtual absl::StatusOr<Connection> Find(const ConnectionKey& key, TimePoint now, Duration min_age) = 0;
  virtual absl::StatusOr<Occupancy> Expire(TimePoint now, const ExpirySettings& settings) = 0;
  virtual absl::StatusOr<std::map<std::string, uint64_t>> VerdictCounts() = 0;
};

// What is done to connections: pins, GOAWAYs, resets.
class Splicer {
 public:
  struct Armed {
    Refusal refusal = Refusal::kNone;  // else nothing was armed. kAlreadyMoved: it has committed before
    bool committed = false;            // the connection was idle at a boundary: emit at once
    uint32_t boundary = 0;
  };
  virtual ~Splicer() = default;
  virtual absl::Status AddPin(ServiceId service, IpAddress client, BackendId to, MoveId move, TimePoint expires) = 0;
  virtual absl::Status RemovePin(ServiceId service, IpAddress client, MoveId move) = 0;
  // An error is the system's; a connection that cannot be moved is Armed::refusal (kNotFound: it is gone).
  virtual absl::StatusOr<Armed> Arm(const ConnectionKey& key, bool allow_trim, Duration min_age) = 0;
  // FailedPrecondition if it has committed meanwhile, NotFound if it is gone.
  virtual absl::Status Disarm(const ConnectionKey& key) = 0;
  // Sends the GOAWAY of a committed connection once, with its latest acknowledgement, window and timestamps.
  // NotFound if the connection is gone, FailedPrecondition if the client already has it, or it never committed.
  virtual absl::Status EmitGoaway(const ConnectionKey& key) = 0;
  // Connections whose GOAWAY is committed and not yet acknowledged: what a new agent must resume.
  virtual absl::StatusOr<std::vector<ConnectionKey>> Unacknowledged() = 0;
  // Resets a connection whose backend is dead, or whose time is over, towards the client at once; whatever either end
  // still sends is answered with RST. NotFound if it is gone or closed.
  virtual absl::Status Abandon(const ConnectionKey& key) = 0;
};

// Where the changes the API made to the configuration file's desired state are kept.
class Store {
 public:
  virtual ~Store() = default;
  // What `file`, the configuration file's desired state, becomes with the kept changes on top.
  virtual Desired Merge(const Desired& file) = 0;
  // From now on changes are kept relative to `file`.
  virtual void Rebase(const Desired& file) = 0;
  // Durable when it returns OK: written whole, synced, renamed into place.
  virtual absl::Status Save(const Desired& desired) = 0;
};

}  // namespace unpin
