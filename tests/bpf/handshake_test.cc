// SPDX-License-Identifier: Apache-2.0
// From SYN to established.
#include <arpa/inet.h>

#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

using Handshake = DataPlaneTest;

TEST_F(Handshake, SynOptionsReachTheBackend) {
  Connection connection(*this);
  const Bytes options =
      Concat(MaximumSegmentSize(1460), SackPermitted(), Timestamp(77, 0), Nop(), Bytes{3, 3, 7});
  connection.SendSyn(UNPIN_FORWARD_SYN, {.seq = kSyn0, .flags = kSyn, .options = options});
}

TEST_F(Handshake, OpensWithBothFlowsAndOneEvent) {
  Connection connection(*this);
  connection.SendSyn();
  EXPECT_TRUE(plane_->HalfOpen(connection.c2s()).ok());
  EXPECT_TRUE(plane_->HalfOpen(connection.s2c()).ok());
  connection.SendSynAck();
  EXPECT_EQ(plane_->FlowCount(), 0u);  // nobody has proved to exist yet
  connection.ClientSends({}, UNPIN_FORWARD_OPENED);

  EXPECT_EQ(plane_->FlowCount(), 2u);
  EXPECT_EQ(plane_->HalfOpen(connection.c2s()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(plane_->HalfOpen(connection.s2c()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(connection.C2sFlow().direction, UNPIN_C2S);
  EXPECT_EQ(connection.S2cFlow().direction, UNPIN_S2C);
  EXPECT_EQ(connection.C2sFlow().backend, kBackend[0]);
  EXPECT_EQ(connection.C2sFlow().service, kService);
  EXPECT_EQ(connection.C2sFlow().rewrite.egress_ifindex, connection.server_ifindex());
  EXPECT_EQ(connection.S2cFlow().rewrite.egress_ifindex, connection.client_ifindex());
  EXPECT_EQ(connection.C2sFlow().follower.next_header, connection.client_first());
  EXPECT_EQ(connection.S2cFlow().follower.next_header, connection.server_first());
  const std::vector<unpin_event> opened = TakeEvents(UNPIN_EVENT_OPENED);
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].move, 0u);
  EXPECT_EQ(opened[0].backend, kBackend[0]);
  const unpin_flow_key c2s = connection.c2s();
  EXPECT_EQ(memcmp(&opened[0].c2s, &c2s, sizeof(c2s)), 0);
}

TEST_F(Handshake, FirstAckMayCarryData) {
  Connection connection(*this);
  connection.SendSyn();
  connection.SendSynAck();
  connection.ClientSends({.payload = http2::Preface()}, UNPIN_FORWARD_OPENED);
  EXPECT_EQ(connection.C2sFlow().follower.next_header, connection.client_first() + 24);
  EXPECT_EQ(connection.C2sFlow().bytes, 24u);
}

TEST_F(Handshake, SynRetransmitKeepsBackendAndPort) {
  Connection connection(*this);
  connection.SendSyn();
  UseBackend(1);  // the table has changed meanwhile
  connection.ClientSends({.seq = kSyn0, .flags = kSyn}, UNPIN_FORWARD_SYN_RETRY);
  connection.SendSynAck();
  connection.SendSynAck();  // the server, too, may repeat itself
  connection.ClientSends({}, UNPIN_FORWARD_OPENED);
}

TEST_F(Handshake, SynWithAnotherNumberDecidesAgain) {
  Connection first(*this);
  first.SendSyn();
  UseBackend(1);
  Connection second(*this, {.client_isn = 55, .backend = 1});
  second.Open();
}

TEST_F(Handshake, SynRetransmitLeavesABackendThatWentDown) {
  Connection first(*this);
  first.SendSyn();
  SetBackendState(0, UNPIN_BACKEND_DOWN);
  UseBackend(1);
  Connection second(*this, {.backend = 1});
  second.Open();
}

TEST_F(Handshake, WrongAckDoesNotOpen) {
  Connection connection(*this);
  connection.SendSyn();
  connection.ClientIsDropped({.ack = 0}, UNPIN_DROP_HALF_OPEN);  // the server has not answered
  connection.SendSynAck();
  connection.ClientIsDropped({.ack = 1}, UNPIN_DROP_HALF_OPEN);
  connection.ClientIsDropped({.ack = kSyn0}, UNPIN_DROP_HALF_OPEN);
  EXPECT_EQ(plane_->FlowCount(), 0u);
  connection.ClientSends({.ack = 0}, UNPIN_FORWARD_OPENED);
}

TEST_F(Handshake, RefusedByTheServerFreesThePort) {
  Connection connection(*this);
  connection.SendSyn();
  connection.ServerSends({.seq = 0, .ack = 0, .flags = kRst | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_FALSE(plane_->HalfOpen(connection.c2s()).ok());
  EXPECT_FALSE(plane_->HalfOpen(connection.s2c()).ok());
}

TEST_F(Handshake, GivenUpByTheClientFreesThePort) {
  Connection connection(*this);
  connection.SendSyn();
  connection.SendSynAck();
  connection.ClientSends({.seq = 0, .ack = 0, .flags = kRst}, UNPIN_FORWARD_C2S);
  EXPECT_FALSE(plane_->HalfOpen(connection.c2s()).ok());
  EXPECT_FALSE(plane_->HalfOpen(connection.s2c()).ok());
}

TEST_F(Handshake, DataInTheSynIsForwardedAndNotFollowed) {  // TCP Fast Open, RFC 7413
  Connection connection(*this);
  const Bytes early = http2::Preface();
  connection.SendSyn(UNPIN_FORWARD_SYN, {.seq = kSyn0,
                                         .flags = kSyn,
                                         .options = FastOpenCookie({1, 2, 3, 4, 5, 6, 7, 8}),
                                         .payload = early});
  connection.ServerSends({.seq = kSyn0, .ack = 24, .flags = kSyn | kAck}, UNPIN_FORWARD_SYN_ACK);
  // The server may answer before the client's ACK, and that ACK may cover the answer.
  connection.ServerSends({.seq = 0, .ack = 24, .payload = http2::Settings()}, UNPIN_FORWARD_S2C);
  connection.ClientSends({.seq = 24, .ack = 15}, UNPIN_FORWARD_OPENED);
  connection.ClientSends({.seq = 24, .ack = 15, .payload = http2::Settings()}, UNPIN_FORWARD_C2S);
  EXPECT_EQ(connection.Arm().refusal, UNPIN_REFUSAL_OPAQUE);
}

TEST_F(Handshake, NoBackendUpResetsTheClient) {
  Connection connection(*this);
  SetBackendState(0, UNPIN_BACKEND_DOWN);
  const Bytes reset =
      Eth(network_.client.peer, network_.client.gateway) /
      Ipv4(kVip, "10.0.0.2", {.ttl = 64, .id = 0}) /
      Tcp(80, 40000,
          {.seq = 0, .ack = connection.client_first(), .flags = kRst | kAck, .window = 0});
  ExpectRun(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex(),
            UNPIN_REPLY_RESET_NO_BACKEND, XDP_TX, reset);
}

TEST_F(Handshake, DrainingBackendGetsNoNewConnection) {
  Connection connection(*this);
  SetBackendState(0, UNPIN_BACKEND_DRAINING);
  EXPECT_EQ(Run(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex())
                .counted,
            std::vector<uint32_t>{UNPIN_REPLY_RESET_NO_BACKEND});
}

TEST_F(Handshake, UnknownNextHopDropsAndAsksTheAgent) {
  const unpin_backend far = {.address = htonl(Quad("10.1.2.99")),
                             .port = htons(50051),
                             .state = UNPIN_BACKEND_SERVING,
                             .service = kService,
                             .pad = 0};
  ASSERT_TRUE(plane_->PutBackend(kBackend[0], far).ok());
  Connection connection(*this);
  connection.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_NEIGHBOR);
  const std::vector<unpin_event> events = TakeEvents(UNPIN_EVENT_NO_NEIGHBOR);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].backend, kBackend[0]);
  EXPECT_FALSE(plane_->HalfOpen(connection.c2s()).ok());
}

TEST_F(Handshake, WithoutSnatTheClientsAddressIsKept) {
  SetServiceFlags(0);
  Connection connection(*this, {.snat = false});
  connection.Open();
  connection.ClientSends({.payload = http2::Filler(10)}, UNPIN_FORWARD_C2S);
  connection.ServerSends({.ack = 10, .payload = http2::Filler(99)}, UNPIN_FORWARD_S2C);
}

using TableFull = DataPlaneTest;

TEST_F(TableFull, NewConnectionIsRefusedAndOldOnesLive) {
  Reload({.flows = 2});
  Connection first(*this), second(*this, {.client_port = 40001});
  first.Open();
  second.SendSyn();
  second.SendSynAck();
  const Bytes reset =
      Eth(network_.client.peer, network_.client.gateway) /
      Ipv4(kVip, "10.0.0.2", {.ttl = 64, .id = 0}) /
      Tcp(80, 40001, {.seq = second.server_first(), .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(second.FromClient({}), second.client_ifindex(), UNPIN_REPLY_RESET_TABLE_FULL, XDP_TX,
            reset);
  EXPECT_EQ(plane_->FlowCount(), 2u);
  first.ClientSends({.payload = http2::Filler(10)}, UNPIN_FORWARD_C2S);
}

TEST_F(TableFull, RoomForOneDirectionIsNoRoom) {
  Reload({.flows = 3});
  Connection first(*this), second(*this, {.client_port = 40001});
  first.Open();
  second.SendSyn();
  second.SendSynAck();
  EXPECT_EQ(Run(second.FromClient({}), second.client_ifindex()).counted,
            std::vector<uint32_t>{UNPIN_REPLY_RESET_TABLE_FULL});
  EXPECT_EQ(plane_->FlowCount(), 2u);  // not half a connection
}

TEST_F(TableFull, SynFloodEvictsNoEstablishedAndNoSplicedFlow) {
  Reload({.half_open = 64});
  Connection connection(*this);
  connection.Open();
  connection.StartHttp2();
  connection.Splice();
  for (uint16_t port = 1; port <= 500; ++port) {
    Connection flood(*this, {.client = "10.0.0.3", .client_port = port});
    ASSERT_EQ(Run(flood.FromClient({.seq = kSyn0, .flags = kSyn}), flood.client_ifindex()).counted,
              std::vector<uint32_t>{UNPIN_FORWARD_SYN});
  }
  connection.ServerSends(
      {.seq = Connection::kHttp2Start, .ack = 77, .payload = http2::Ping()}, UNPIN_FORWARD_SPLICED,
      {.seq = Connection::kHttp2Start + 17, .ack = 77, .payload = http2::Ping()});
}

// The halves are evicted one by one: the client's repeated SYN must find its way all the same.
TEST_F(TableFull, HandshakeSurvivesTheLossOfOneHalf) {
  Reload({.half_open = 64});
  Connection connection(*this);
  connection.SendSyn();
  for (uint16_t port = 1; port <= 200; ++port) {
    Connection flood(*this, {.client = "10.0.0.3", .client_port = port});
    Run(flood.FromClient({.seq = kSyn0, .flags = kSyn}), flood.client_ifindex());
    Run(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex());
  }
  const absl::StatusOr<unpin_half_open> half = plane_->HalfOpen(connection.c2s());
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_TRUE(plane_->HalfOpen(half->reverse).ok());
}

}  // namespace
}  // namespace unpin::testkit
