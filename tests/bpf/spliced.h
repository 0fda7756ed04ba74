// SPDX-License-Identifier: Apache-2.0
// A connection idle at the boundary, then committed: the GOAWAY, 17 bytes of client space, is on its way.
#pragma once

#include "tests/bpf/scene.h"

namespace unpin::testkit {

inline constexpr uint32_t kBoundary = Connection::kHttp2Start;
inline constexpr uint32_t kDelta = 17;  // RFC 9113 section 6.8: 9 bytes of header, 8 of payload
inline constexpr uint32_t kAsked = Connection::kClientStart;  // the client's next byte

class Spliced : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    Begin({});
  }
  void Begin(const Ends& ends) {
    connection_.emplace(*this, ends);
    connection_->Open();
    connection_->StartHttp2();
    connection_->Splice();
    plane_->TakeEvents();
  }

  using Where = std::source_location;
  // Positions of server space; beyond the boundary they arrive 17 later.
  void ServerSends(uint32_t seq, const Bytes& payload, Where where = Where::current()) {
    connection_->ServerSends(
        {.seq = seq, .ack = kAsked, .payload = payload}, UNPIN_FORWARD_SPLICED,
        {.seq = seq + (seq < kBoundary ? 0 : kDelta), .ack = kAsked, .payload = payload}, where);
  }
  // The client's acknowledgement, in its own space, reaches the server as `arrives`.
  void ClientAcks(uint32_t ack, uint32_t arrives, Where where = Where::current()) {
    connection_->ClientSends({.seq = kAsked, .ack = ack}, UNPIN_FORWARD_SPLICED,
                             {.seq = kAsked, .ack = arrives}, where);
  }
  void Acknowledge(Where where = Where::current()) {
    ClientAcks(kBoundary + kDelta, kBoundary, where);
  }
  uint32_t State() { return connection_->S2cFlow().splice.state; }

  std::optional<Connection> connection_;
};

}  // namespace unpin::testkit
