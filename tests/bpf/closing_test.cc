// SPDX-License-Identifier: Apache-2.0
// How connections end, what a reused 4-tuple means, and what is answered to packets of nobody.
#include <arpa/inet.h>

#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

class Closing : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    connection_.Open();
    TakeEvents(UNPIN_EVENT_OPENED);
  }
  size_t ClosedEvents() { return TakeEvents(UNPIN_EVENT_CLOSED).size(); }

  // The RST that answers a packet of the client, RFC 9293 section 3.10.7.1.
  Bytes Reset(uint32_t seq, uint32_t ack, uint8_t flags) {
    return Eth(network_.client.peer, network_.client.gateway) /
           Ipv4(kVip, "10.0.0.2", {.ttl = 64, .id = 0}) /
           Tcp(kVipPort, 40000, {.seq = seq, .ack = ack, .flags = flags, .window = 0});
  }

  Connection connection_{*this};
};

TEST_F(Closing, FinBothWaysClosesOnce) {
  connection_.ClientSends({.flags = kFin | kAck}, UNPIN_FORWARD_C2S);
  EXPECT_EQ(ClosedEvents(), 0u);
  connection_.ServerSends({.ack = 1}, UNPIN_FORWARD_S2C);
  connection_.ServerSends({.ack = 1, .flags = kFin | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_EQ(ClosedEvents(), 1u);
  connection_.ServerSends({.ack = 1, .flags = kFin | kAck},
                          UNPIN_FORWARD_S2C);  // again: the last ACK was lost
  connection_.ClientSends({.seq = 1, .ack = 1}, UNPIN_FORWARD_C2S);
  EXPECT_EQ(ClosedEvents(), 0u);
}

TEST_F(Closing, SimultaneousClose) {
  connection_.ClientSends({.flags = kFin | kAck}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.flags = kFin | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_EQ(ClosedEvents(), 1u);
  connection_.ClientSends({.seq = 1, .ack = 1}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.seq = 1, .ack = 1}, UNPIN_FORWARD_S2C);
}

TEST_F(Closing, HalfClosedConnectionStillCarriesData) {
  connection_.ClientSends({.flags = kFin | kAck}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.ack = 1, .payload = http2::Filler(1000)}, UNPIN_FORWARD_S2C);
  EXPECT_EQ(ClosedEvents(), 0u);
}

TEST_F(Closing, ResetOfEitherEndClosesAndPasses) {
  connection_.ClientSends({.flags = kRst}, UNPIN_FORWARD_C2S);
  EXPECT_EQ(ClosedEvents(), 1u);
  Connection other(*this, {.client_port = 40001});
  other.Open();
  other.ServerSends({.flags = kRst | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_EQ(ClosedEvents(), 1u);
}

TEST_F(Closing, ReusedTupleAfterCloseDecidesAgainWithARestedPort) {
  connection_.ClientSends({.flags = kFin | kAck}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.ack = 1, .flags = kFin | kAck}, UNPIN_FORWARD_S2C);
  controls_.snat_port_min = controls_.snat_port_max = connection_.source_port();
  SetControls();
  Connection again(*this, {.client_isn = 5000000});
  again.ClientIsDropped({.seq = kSyn0, .flags = kSyn},
                        UNPIN_DROP_NO_PORT);  // its old port is not quiet yet

  UseBackend(1);
  Connection elsewhere(*this, {.client_isn = 5000000, .backend = 1});
  elsewhere.Open();
  // What the old server still sends must not reach the new connection.
  connection_.ServerIsDropped({.seq = 1, .ack = 1}, UNPIN_DROP_UNKNOWN);
}

TEST_F(Closing, ReusedTupleLeavesARemovedBackend) {  // kubernetes#81775
  SetBackendState(0, UNPIN_BACKEND_DOWN);
  UseBackend(1);
  Connection again(*this, {.client_isn = 5000000, .backend = 1});
  again.Open();
}

TEST_F(
    Closing,
    SynOnALiveConnectionGoesToItsBackend) {  // RFC 5961 section 4: the challenge ACK sorts it out
  UseBackend(1);
  connection_.ClientSends({.seq = 777, .flags = kSyn}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.ack = 0}, UNPIN_FORWARD_S2C);
  SetBackendState(0, UNPIN_BACKEND_DRAINING);
  connection_.ClientSends({.seq = 777, .flags = kSyn}, UNPIN_FORWARD_C2S);
  connection_.ClientSends({.payload = http2::Filler(9)}, UNPIN_FORWARD_C2S);
}

TEST_F(Closing, ReusedTupleWithoutSnat) {
  SetServiceFlags(0);
  Connection first(*this, {.client_port = 41000, .snat = false});
  first.Open();
  first.ClientSends({.flags = kRst}, UNPIN_FORWARD_C2S);
  Connection second(*this,
                    {.client_port = 41000, .client_isn = 9, .server_isn = 11, .snat = false});
  second.Open();
  second.ServerSends({.payload = http2::Filler(5)}, UNPIN_FORWARD_S2C);
}

TEST_F(Closing, ConnectionOutlivesItsService) {
  ASSERT_TRUE(plane_->EraseService({htonl(Quad(kVip)), htons(kVipPort), IPPROTO_TCP, 0}).ok());
  connection_.ClientSends({.payload = http2::Filler(5)}, UNPIN_FORWARD_C2S);
  connection_.ServerSends({.ack = 5}, UNPIN_FORWARD_S2C);
}

using Unknown = Closing;

TEST_F(Unknown, AckIsResetAtExactlyItsNumber) {  // RFC 5961: nothing else is accepted
  const Bytes in =
      Eth(network_.client.gateway, network_.client.peer) / Ipv4("10.0.0.2", kVip) /
      Tcp(45000, kVipPort,
          {.seq = 1234, .ack = 0xfffffff0, .options = Concat(Nop(2), Timestamp(1, 2))}) /
      Payload("some data");
  const Bytes out = Eth(network_.client.peer, network_.client.gateway) /
                    Ipv4(kVip, "10.0.0.2", {.id = 0}) /
                    Tcp(kVipPort, 45000, {.seq = 0xfffffff0, .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(in, network_.client.ifindex, UNPIN_REPLY_RESET_UNKNOWN, XDP_TX, out);
}

TEST_F(Unknown, FinWithoutAckIsResetAcknowledgingIt) {
  const Bytes in = Eth(network_.client.gateway, network_.client.peer) / Ipv4("10.0.0.2", kVip) /
                   Tcp(45000, kVipPort, {.seq = 0xffffffff, .flags = kFin}) / Payload("ab");
  const Bytes out = Eth(network_.client.peer, network_.client.gateway) /
                    Ipv4(kVip, "10.0.0.2", {.id = 0}) /
                    Tcp(kVipPort, 45000, {.seq = 0, .ack = 2, .flags = kRst | kAck, .window = 0});
  ExpectRun(in, network_.client.ifindex, UNPIN_REPLY_RESET_UNKNOWN, XDP_TX, out);
}

TEST_F(Unknown, SynAckIsReset) {
  const Bytes in = Eth(network_.client.gateway, network_.client.peer) / Ipv4("10.0.0.2", kVip) /
                   Tcp(45000, kVipPort, {.seq = 7, .ack = 99, .flags = kSyn | kAck});
  const Bytes out = Eth(network_.client.peer, network_.client.gateway) /
                    Ipv4(kVip, "10.0.0.2", {.id = 0}) /
                    Tcp(kVipPort, 45000, {.seq = 99, .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(in, network_.client.ifindex, UNPIN_REPLY_RESET_UNKNOWN, XDP_TX, out);
}

TEST_F(Unknown, PaddedAndOptionedFramesAreAnsweredByABareReset) {
  const Bytes in = Eth(network_.client.gateway, network_.client.peer) /
                   Ipv4("10.0.0.2", kVip, {.options = {7, 7, 4, 0, 0, 0, 0, 0}}) /
                   Tcp(45000, kVipPort, {.seq = 1, .ack = 2}) / Padding(Bytes(20, 0xcc));
  const Bytes out = Eth(network_.client.peer, network_.client.gateway) /
                    Ipv4(kVip, "10.0.0.2", {.id = 0}) /
                    Tcp(kVipPort, 45000, {.seq = 2, .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(in, network_.client.ifindex, UNPIN_REPLY_RESET_UNKNOWN, XDP_TX, out);
}

TEST_F(Unknown, ResetIsNeverAnswered) {
  ExpectRun(Eth() / Ipv4("10.0.0.2", kVip) / Tcp(45000, kVipPort, {.flags = kRst}),
            network_.client.ifindex, UNPIN_DROP_UNKNOWN, XDP_DROP, {});
  ExpectRun(Eth() / Ipv4("10.0.0.2", kVip) / Tcp(45000, kVipPort, {.flags = kRst | kAck}),
            network_.client.ifindex, UNPIN_DROP_UNKNOWN, XDP_DROP, {});
}

TEST_F(Unknown, SilenceWhereTheOperatorPrefersIt) {
  controls_.unknown_tcp = UNPIN_UNKNOWN_DROP;
  SetControls();
  ExpectRun(Eth() / Ipv4("10.0.0.2", kVip) / Tcp(45000, kVipPort, {.ack = 5}),
            network_.client.ifindex, UNPIN_DROP_UNKNOWN, XDP_DROP, {});
}

TEST_F(Unknown, NonsenseFlagsOpenNothing) {
  for (const uint8_t flags : {kSyn | kFin, kSyn | kRst, kSyn | kFin | kAck, 0}) {
    SCOPED_TRACE(static_cast<int>(flags));
    const Outcome outcome =
        Run(Eth(network_.client.gateway, network_.client.peer) / Ipv4("10.0.0.2", kVip) /
                Tcp(45000, kVipPort, {.seq = 5, .flags = static_cast<uint8_t>(flags)}),
            network_.client.ifindex);
    EXPECT_NE(outcome.action, XDP_REDIRECT);
    EXPECT_NE(outcome.action, XDP_PASS);
    EXPECT_FALSE(plane_->HalfOpen(FlowKey("10.0.0.2", 45000, kVip, kVipPort)).ok());
  }
}

using NextHop = Closing;

TEST_F(NextHop, ChangedNeighbourIsUsedOnceTheAgentSaysSo) {
  ASSERT_TRUE(Ip("neigh replace 10.1.1.2 lladdr 02:00:00:00:00:99 nud permanent dev bt-b1\n").ok());
  connection_.ClientSends({}, UNPIN_FORWARD_C2S);  // as before
  controls_.route_generation = 2;
  SetControls();
  Bytes moved = connection_.ToServer({});
  moved[5] = 0x99;
  ExpectRun(connection_.FromClient({}), connection_.client_ifindex(), UNPIN_FORWARD_C2S,
            XDP_REDIRECT, moved);
  ASSERT_TRUE(Ip("neigh replace 10.1.1.2 lladdr 02:00:00:00:00:12 nud permanent dev bt-b1\n").ok());
}

TEST_F(NextHop, LostNeighbourKeepsTheOldOne) {
  ASSERT_TRUE(Ip("neigh del 10.1.1.2 dev bt-b1\n").ok());
  controls_.route_generation = 2;
  SetControls();
  connection_.ClientSends({}, UNPIN_FORWARD_C2S);
  ASSERT_TRUE(Ip("neigh replace 10.1.1.2 lladdr 02:00:00:00:00:12 nud permanent dev bt-b1\n").ok());
}

}  // namespace
}  // namespace unpin::testkit
