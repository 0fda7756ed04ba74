// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/flow_view.h"

#include <algorithm>

#include "userspace/datapath/abi_convert.h"

namespace unpin {
namespace {

Protocol ToProtocol(__u8 protocol) {
  switch (protocol) {
    case UNPIN_PROTOCOL_UNKNOWN:
      return Protocol::kUnknown;
    case UNPIN_PROTOCOL_H2:
      return Protocol::kH2;
    case UNPIN_PROTOCOL_TLS:
      return Protocol::kTls;
    case UNPIN_PROTOCOL_HTTP1:
      return Protocol::kHttp1;
    default:
      return Protocol::kOpaque;
  }
}

bool IsClosed(const unpin_flow& c2s, const unpin_flow& s2c) {
  return ((c2s.flags | s2c.flags) & UNPIN_FLOW_RST) || (c2s.flags & s2c.flags & UNPIN_FLOW_FIN);
}

Refusal RefusalOf(__u8 client_protocol, __u8 server_protocol) {
  const bool client_refutes = client_protocol > UNPIN_PROTOCOL_H2;
  switch (ToProtocol(client_refutes ? client_protocol : server_protocol)) {
    case Protocol::kTls:
      return Refusal::kTls;
    case Protocol::kHttp1:
      return Refusal::kHttp1;
    case Protocol::kOpaque:
      return Refusal::kOpaque;
    case Protocol::kUnknown:
      return Refusal::kUndecided;
    case Protocol::kH2:
      break;
  }
  return client_protocol == UNPIN_PROTOCOL_H2 ? Refusal::kNone : Refusal::kUndecided;
}

}  // namespace

Protocol ProtocolOf(const unpin_flow& c2s, const unpin_flow& s2c) {
  const Protocol client = ToProtocol(c2s.follower.protocol);
  const Protocol server = ToProtocol(s2c.follower.protocol);
  const bool answered_otherwise = server != Protocol::kH2 && server != Protocol::kUnknown;
  return client == Protocol::kH2 && answered_otherwise ? Protocol::kOpaque : client;
}

Refusal RefusalOf(const unpin_flow& c2s, const unpin_flow& s2c, TimePoint now, Duration min_age) {
  const unpin_follower& follower = s2c.follower;
  if (c2s.flags | s2c.flags) return Refusal::kClosing;
  if (const Refusal refusal = RefusalOf(c2s.follower.protocol, follower.protocol);
      refusal != Refusal::kNone) {
    return refusal;
  }
  if (s2c.splice.state >= UNPIN_SPLICE_COMMITTED) return Refusal::kAlreadyMoved;
  if (follower.flags & UNPIN_FOLLOWER_GOAWAY_SEEN) return Refusal::kServerGoaway;
  if (follower.flags & UNPIN_FOLLOWER_LOST) return Refusal::kLost;
  if (follower.epoch != 0) return Refusal::kBehind;
  if (follower.streams_ended == 0) return Refusal::kNoResponse;
  return now - TimePointOf(s2c.created_ns) < min_age ? Refusal::kTooYoung : Refusal::kNone;
}

Connection ConnectionOf(const FlowPair& pair, TimePoint now, Duration min_age) {
  const unpin_flow& c2s = pair.c2s;
  const unpin_flow& s2c = pair.s2c;
  return {.key = ConnectionKeyOf(pair.key),
          .snat = EndpointOf(c2s.rewrite.source, c2s.rewrite.source_port),
          .service = c2s.service,
          .backend = c2s.backend,
          .protocol = ProtocolOf(c2s, s2c),
          .refusal = RefusalOf(c2s, s2c, now, min_age),
          .closed = IsClosed(c2s, s2c),
          .created = TimePointOf(c2s.created_ns),
          .last_seen = TimePointOf(std::max(c2s.last_seen_ns, s2c.last_seen_ns)),
          .streams_begun = (uint64_t{c2s.follower.last_stream} + 1) / 2,
          .streams_ended = uint64_t{c2s.follower.streams_ended} + s2c.follower.streams_ended,
          .bytes_to_server = c2s.bytes,
          .bytes_to_client = s2c.bytes};
}

}  // namespace unpin
