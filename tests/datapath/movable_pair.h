// SPDX-License-Identifier: Apache-2.0
// A connection as the flow table holds it, and every way to make it one that cannot be moved.
#pragma once

#include <arpa/inet.h>

#include <functional>
#include <vector>

#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/datapath/abi_convert.h"
#include "userspace/datapath/flow_view.h"

namespace unpin {

// Five seconds old, idle at the boundary 1000, with its VIP, client, backend and SNAT address as in the testbed.
// `index` makes it another client port and SNAT port.
inline FlowPair MovablePair(TimePoint now, uint16_t index = 0) {
  FlowPair pair;
  pair.key = {.source = htonl(0x0a000002),       // 10.0.0.2
              .destination = htonl(0x0a090001),  // 10.9.0.1
              .source_port = htons(40000 + index),
              .destination_port = htons(50051)};
  pair.c2s.reverse = {.source = htonl(0x0a010102),       // 10.1.1.2
                      .destination = htonl(0x0a01ff01),  // 10.1.255.1
                      .source_port = htons(50051),
                      .destination_port = htons(1024 + index)};
  pair.s2c.reverse = pair.key;
  pair.c2s.rewrite.source = pair.c2s.reverse.destination;
  pair.c2s.rewrite.source_port = pair.c2s.reverse.destination_port;
  pair.s2c.rewrite.source = pair.key.destination;
  pair.s2c.rewrite.source_port = pair.key.destination_port;
  pair.s2c.rewrite.destination = pair.key.source;
  pair.s2c.rewrite.destination_port = pair.key.source_port;
  pair.s2c.direction = UNPIN_S2C;
  const uint64_t created = NanosecondsOf(now - std::chrono::seconds(5));
  for (unpin_flow* flow : {&pair.c2s, &pair.s2c}) {
    flow->service = 3;
    flow->backend = 17;
    flow->created_ns = created;
    flow->follower.protocol = UNPIN_PROTOCOL_H2;
    flow->follower.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
    flow->follower.direction = flow->direction;
    flow->follower.next_header = flow->follower.highest_seen = 1000;
  }
  pair.c2s.follower.last_stream = 9;
  pair.c2s.follower.streams_ended = 1;
  pair.s2c.follower.last_stream = 5;
  pair.s2c.follower.streams_ended = 3;
  pair.c2s.last_seen_ns = created + 100;
  pair.s2c.last_seen_ns = created + 200;
  pair.c2s.bytes = 1111;
  pair.s2c.bytes = 2222;
  return pair;
}

struct Reason {
  Refusal refusal;
  std::function<void(FlowPair&)> bring_about;
};

// In the order in which they are looked for; `too young` means less than a second.
inline std::vector<Reason> ReasonsAgainstMoving(TimePoint now) {
  const auto client_speaks = [](uint8_t protocol) {
    return [protocol](FlowPair& p) { p.c2s.follower.protocol = protocol; };
  };
  const uint64_t lately = NanosecondsOf(now - std::chrono::milliseconds(500));
  return {
      {Refusal::kClosing, [](FlowPair& p) { p.c2s.flags = UNPIN_FLOW_FIN; }},
      {Refusal::kTls, client_speaks(UNPIN_PROTOCOL_TLS)},
      {Refusal::kHttp1, client_speaks(UNPIN_PROTOCOL_HTTP1)},
      {Refusal::kOpaque, client_speaks(UNPIN_PROTOCOL_OPAQUE)},
      {Refusal::kUndecided, client_speaks(UNPIN_PROTOCOL_UNKNOWN)},
      {Refusal::kAlreadyMoved, [](FlowPair& p) { p.s2c.splice.state = UNPIN_SPLICE_COMMITTED; }},
      {Refusal::kServerGoaway,
       [](FlowPair& p) { p.s2c.follower.flags |= UNPIN_FOLLOWER_GOAWAY_SEEN; }},
      {Refusal::kLost, [](FlowPair& p) { p.s2c.follower.flags |= UNPIN_FOLLOWER_LOST; }},
      {Refusal::kBehind, [](FlowPair& p) { p.s2c.follower.epoch = 77; }},
      {Refusal::kNoResponse, [](FlowPair& p) { p.s2c.follower.streams_ended = 0; }},
      {Refusal::kTooYoung, [lately](FlowPair& p) { p.s2c.created_ns = p.c2s.created_ns = lately; }},
  };
}

}  // namespace unpin
