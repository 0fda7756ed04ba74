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

struct ServiceSpec {
  std::string name;  // unique; [a-z0-9-]{1,63}
  Endpoint vip;
  bool snat = true;
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
