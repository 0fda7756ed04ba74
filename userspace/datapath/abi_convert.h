// SPDX-License-Identifier: Apache-2.0
// Between the values of the model and their form in abi.h (network byte order, nanoseconds).
#pragma once

#include <arpa/inet.h>

#include <string>

#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"
#include "userspace/model/connection.h"

namespace unpin {

inline Endpoint EndpointOf(__be32 address, __be16 port) {
  return {.address = {ntohl(address)}, .port = ntohs(port)};
}

inline TimePoint TimePointOf(__u64 monotonic_ns) {
  return TimePoint(Duration(static_cast<Duration::rep>(monotonic_ns)));
}

inline __u64 NanosecondsOf(TimePoint time) {
  return static_cast<__u64>(time.time_since_epoch().count());
}

// What the client's packets are addressed by.
inline unpin_flow_key C2sKeyOf(const ConnectionKey& key) {
  return {.source = htonl(key.client.address.bits),
          .destination = htonl(key.vip.address.bits),
          .source_port = htons(key.client.port),
          .destination_port = htons(key.vip.port)};
}

inline ConnectionKey ConnectionKeyOf(const unpin_flow_key& c2s) {
  return {.client = EndpointOf(c2s.source, c2s.source_port),
          .vip = EndpointOf(c2s.destination, c2s.destination_port)};
}

inline std::string ToString(const ConnectionKey& key) {
  return key.client.ToString() + " -> " + key.vip.ToString();
}

}  // namespace unpin
