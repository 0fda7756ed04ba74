// SPDX-License-Identifier: Apache-2.0
// What the data plane was seen to do: connections, events, counters. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"
#include "userspace/model/service.h"

namespace unpin {

using MoveId = uint32_t;  // 0: none

enum class Protocol { kUnknown, kH2, kTls, kHttp1, kOpaque };
absl::string_view ToString(Protocol protocol);  // "unknown", "h2", "tls", "http1", "opaque"

// Why a connection cannot be moved; kNone when it can. Mirrors enum unpin_refusal.
enum class Refusal {
  kNone, kNotFound, kUndecided, kTls, kHttp1, kOpaque, kTooYoung, kNoResponse, kClosing,
  kServerGoaway, kAlreadyMoved, kBehind, kLost,
};
// "", "not found", "protocol not known yet", "tls", "http1", "opaque", "too young", "no response yet", "closing",
// "server sent GOAWAY", "already moved", "out of sync (recovering)", "out of sync".
absl::string_view ToString(Refusal refusal);

// Names a connection: the client's end and the VIP it talks to.
struct ConnectionKey {
  Endpoint client;
  Endpoint vip;
  friend auto operator<=>(const ConnectionKey&, const ConnectionKey&) = default;
};
template <typename H>
H AbslHashValue(H h, const ConnectionKey& k) {
  return H::combine(std::move(h), k.client, k.vip);
}

struct Connection {
  ConnectionKey key;
  Endpoint snat;  // what the backend sees as its client
  ServiceId service = 0;
  BackendId backend = 0;
  Protocol protocol = Protocol::kUnknown;
  Refusal refusal = Refusal::kNone;  // would a move be accepted now
  bool closed = false;               // RST, or FIN both ways: kept for its quiet time only
  TimePoint created;
  TimePoint last_seen;  // newest packet of either direction
  uint64_t streams_begun = 0;
  uint64_t streams_ended = 0;
  uint64_t bytes_to_server = 0;
  uint64_t bytes_to_client = 0;

  uint64_t open_streams() const {
    return streams_begun > streams_ended ? streams_begun - streams_ended : 0;
  }
};

struct FlowEvent {
  enum class Type { kOpened, kClosed, kCommitted, kAcknowledged, kHole, kNoNeighbor, kSuspect };
  Type type = Type::kOpened;
  TimePoint time;
  ConnectionKey key;
  ServiceId service = 0;
  BackendId backend = 0;
  MoveId move = 0;        // kOpened: the move whose pin chose the backend
  uint32_t boundary = 0;  // kCommitted, kAcknowledged, kHole
};

}  // namespace unpin
