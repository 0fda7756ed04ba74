// SPDX-License-Identifier: Apache-2.0
// Which id the data plane knows a service or a backend by. A value: a change makes a new registry, so that a failed
// change leaves the old one.
//
// An id outlives its service or backend: connections refer to it until the last has ended. Only then, and not before
// handshakes begun earlier have ended too, is it given to somebody else.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "userspace/model/ports.h"
#include "userspace/model/service.h"

namespace unpin {

class IdRegistry {
 public:
  struct Service {
    ServiceId id = 0;
    std::string name;
    Endpoint vip;
    std::optional<TimePoint> retired;
  };
  struct Backend {
    BackendId id = 0;
    ServiceId service = 0;
    std::string service_name;
    Endpoint endpoint;
    std::optional<TimePoint> retired;
  };
  struct InUse {
    std::set<ServiceId> services;
    std::set<BackendId> backends;
  };

  static constexpr Duration kQuietTime = std::chrono::seconds(60);
  static constexpr ServiceId kServices = 1024;   // ids 0..1023
  static constexpr BackendId kBackends = 16384;  // ids 1..16383; 0 is nobody's

  // What the data plane holds, before anything is desired.
  static IdRegistry Adopted(std::span<const ServiceRow> services,
                            std::span<const BackendRow> backends, TimePoint now);

  // Every desired service (known by its VIP) and backend (by service and endpoint) has an id, its old one if
  // it had one; all others are retired. ResourceExhausted while retired ones hold the last ids.
  absl::StatusOr<IdRegistry> With(const Desired& desired, TimePoint now) const;

  // Without the retired ones that have been quiet for long enough and that no connection uses.
  IdRegistry Without(const InUse& in_use, TimePoint now) const;

  bool HasRetired() const;
  const Service* FindService(ServiceId id) const;
  const Backend* FindBackend(BackendId id) const;
  // Nothing if it is retired.
  std::optional<BackendId> IdOf(const Endpoint& vip, const Endpoint& backend) const;
  std::optional<ServiceId> IdOf(const Endpoint& vip) const;
  const std::map<BackendId, Backend>& backends() const { return backends_; }

 private:
  void Retire(TimePoint now);
  absl::StatusOr<ServiceId> Claim(const ServiceSpec& spec);
  absl::StatusOr<BackendId> Claim(const Service& service, const Endpoint& endpoint,
                                  BackendId lowest_free);

  std::map<ServiceId, Service> services_;
  std::map<BackendId, Backend> backends_;
  std::map<Endpoint, ServiceId> service_ids_;  // by VIP
  std::map<std::pair<ServiceId, Endpoint>, BackendId> backend_ids_;
};

}  // namespace unpin
