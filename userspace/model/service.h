// SPDX-License-Identifier: Apache-2.0
// What the operator wants: services, their backends and the agent's settings. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"

namespace unpin {

using BackendId = uint32_t;  // index of the data plane's `backends` map; stable while flows refer to it
using ServiceId = uint32_t;

// What a connection's load is counted in.
enum class LoadSignal { kRequests, kInflight, kBytes };  // streams/s, open streams, bytes/s both ways

struct RebalanceSettings {
  bool enabled = true;
  LoadSignal signal = LoadSignal::kRequests;
  double tolerance = 0.05;         // a backend may carry so much more than its share
  uint32_t ticks = 2;              // imbalanced for so many looks on end before anything is moved
  uint32_t moves_per_second = 20;  // at most
  Duration cool_down = std::chrono::seconds(10);  // of a connection that was moved
  friend bool operator==(const RebalanceSettings&, const RebalanceSettings&) = default;
};

struct OutlierSettings {
  double latency_factor = 0;  // so many times the median of the others; 0: off
  Duration base = std::chrono::seconds(30);      // first ejection, longer by as much each time (gRFC A50)
  Duration longest = std::chrono::seconds(300);
  uint32_t max_percent = 10;  // of the backends, ejected at a time; one always may be
  friend bool operator==(const OutlierSettings&, const OutlierSettings&) = default;
};

struct HealthSettings {
  enum class Kind { kNone, kTcp, kGrpc, kHttp };
  Kind kind = Kind::kNone;
  Duration interval = std::chrono::seconds(1);  // between probes of one backend, jittered by 10 %
  Duration timeout = std::chrono::milliseconds(500);
  uint32_t rise = 2, fall = 2;  // probes on end
  std::string path = "/";       // kHttp: GET, 2xx and 3xx are good
  std::string service;          // kGrpc: HealthCheckRequest.service
  friend bool operator==(const HealthSettings&, const HealthSettings&) = default;
};

// How new connections are steered, and what is done to those there are.
struct ServicePolicy {
  bool source_hash = false;            // by the client's address only: affinity
  uint32_t new_per_second = 0;         // new connections; 0: no limit
  uint32_t connections_per_backend = 0;  // 0: no limit
  Duration max_connection_age{};       // jittered by 10 %; 0: no limit
  Duration drain_deadline{};           // what is still on a draining backend then is reset; 0: never
  RebalanceSettings rebalance;
  OutlierSettings outlier;
  HealthSettings health;
  friend bool operator==(const ServicePolicy&, const ServicePolicy&) = default;
};

struct ServiceSpec {
  std::string name;  // unique; [a-z0-9-]{1,63}
  Endpoint vip;
  bool snat = true;
  ServicePolicy policy;
  friend bool operator==(const ServiceSpec&, const ServiceSpec&) = default;
};

struct BackendSpec {
  Endpoint endpoint;
  uint32_t weight = 100;  // 0..65535, share of new connections
  bool draining = false;  // no new connections, existing ones are moved away
  friend bool operator==(const BackendSpec&, const BackendSpec&) = default;
};

struct ServiceWithBackends {
  ServiceSpec spec;
  std::map<Endpoint, BackendSpec> backends;
  friend bool operator==(const ServiceWithBackends&, const ServiceWithBackends&) = default;
};

// Everything desired, by service name.
using Desired = std::map<std::string, ServiceWithBackends>;

struct SnatSettings {
  std::vector<IpAddress> addresses;  // at most 16
  uint16_t port_min = 1024;          // inclusive; below the kernel's own ephemeral range by default
  uint16_t port_max = 32767;         // inclusive
};

struct ExpirySettings {
  Duration established = std::chrono::hours(2);   // idle
  Duration closing = std::chrono::minutes(2);     // FIN in one direction only
  Duration closed = std::chrono::seconds(60);     // quiet time before a SNAT port is used again
};

struct MoveSettings {
  Duration min_age = std::chrono::seconds(1);            // of a connection, before it may be moved
  Duration trim_after = std::chrono::milliseconds(20);   // armed for so long: cut a packet at a boundary
  Duration arm_timeout = std::chrono::seconds(2);        // armed for so long without a boundary: expired
  Duration resend_interval = std::chrono::milliseconds(20);
  Duration ack_timeout = std::chrono::seconds(30);       // GOAWAY never acknowledged: expired, resends end
  Duration reconnect_timeout = std::chrono::seconds(30); // life of a pin
};

}  // namespace unpin
