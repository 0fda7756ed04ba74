// SPDX-License-Identifier: Apache-2.0
// Backends that die, refuse, or are full: who is reset, at which number, and where new connections go meanwhile.
#include <arpa/inet.h>

#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

constexpr uint64_t kFarFuture = 1ull << 62;

class DeadBackend : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    connection_.Open();
    connection_.StartHttp2();
    plane_->TakeEvents();
  }
  uint32_t Abandon(const Connection& connection) {
    unpin_arm_args args = {};
    args.s2c = connection.s2c();
    const absl::StatusOr<unpin_arm_args> done = plane_->AbandonConnection(args);
    EXPECT_TRUE(done.ok()) << done.status();
    return done.value_or(args).refusal;
  }
  // The RST towards the client, RFC 9293 section 3.10.7.1: the acknowledged number, which is the expected one.
  Bytes ResetToClient(uint32_t seq) const {
    return Eth(network_.client.peer, network_.client.gateway) / Ipv4(kVip, "10.0.0.2", {.id = 0}) /
           Tcp(kVipPort, 40000, {.seq = seq, .ack = 0, .flags = kRst, .window = 0});
  }
  bool IsSuspect(int which) { return plane_->Standing(kBackend[which])->suspect_until_ns != 0; }
  // Slots of both backends, so that there is a choice.
  void UseBoth() {
    ASSERT_TRUE(plane_
                    ->PutTable(kService, {kBackend[0], kBackend[1], kBackend[0], kBackend[1],
                                          kBackend[0], kBackend[1], kBackend[0]})
                    .ok());
  }
  // Of 64 SYNs from as many ports, how many went to each backend, and how many nowhere.
  struct Counts {
    int to[2] = {0, 0};
    int refused = 0;
    bool operator==(const Counts&) const = default;
  };
  Counts Steer(uint32_t refusal) {
    Counts counts;
    for (uint16_t port = 20000; port < 20064; ++port) {
      Connection connection(*this, {.client_port = port});
      const Outcome outcome =
          Run(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex());
      const absl::StatusOr<unpin_half_open> half = plane_->HalfOpen(connection.c2s());
      if (half.ok())
        ++counts.to[half->backend == kBackend[1]];
      else
        counts.refused += outcome.counted == std::vector<uint32_t>{refusal};
    }
    return counts;
  }

  Connection connection_{*this};
};

TEST_F(DeadBackend, AbandonedClientIsResetAtExactlyItsNumber) {
  EXPECT_EQ(Abandon(connection_), UNPIN_REFUSAL_NONE);
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_CLOSED).size(), 1u);
  const Segment ask = {.seq = Connection::kClientStart, .ack = 100, .payload = http2::Filler(9)};
  ExpectRun(connection_.FromClient(ask), connection_.client_ifindex(), UNPIN_REPLY_RESET_ABANDONED,
            XDP_TX, ResetToClient(connection_.server_first() + 100));
}

TEST_F(DeadBackend, AbandonedServerIsResetToo) {
  ASSERT_EQ(Abandon(connection_), UNPIN_REFUSAL_NONE);
  const Bytes in = connection_.FromServer(
      {.seq = Connection::kHttp2Start, .ack = 77, .payload = http2::Filler(9)});
  const Bytes out =
      Eth(network_.backend[0].peer, network_.backend[0].gateway) /
      Ipv4(kSnatAddress, kBackendAddress[0], {.id = 0}) /
      Tcp(connection_.source_port(), kBackendPort[0],
          {.seq = connection_.client_first() + 77, .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(in, connection_.server_ifindex(), UNPIN_REPLY_RESET_ABANDONED, XDP_TX, out);
}

TEST_F(DeadBackend, AbandonedAfterASpliceIsResetInClientSpace) {
  connection_.Splice();
  ASSERT_EQ(Abandon(connection_), UNPIN_REFUSAL_NONE);
  const uint32_t ack = Connection::kHttp2Start + UNPIN_GOAWAY_LENGTH;
  ExpectRun(connection_.FromClient({.seq = Connection::kClientStart, .ack = ack}),
            connection_.client_ifindex(), UNPIN_REPLY_RESET_ABANDONED, XDP_TX,
            ResetToClient(connection_.server_first() + ack));
}

TEST_F(DeadBackend, AbandonTwiceSaysThatItIsClosed) {
  ASSERT_EQ(Abandon(connection_), UNPIN_REFUSAL_NONE);
  TakeEvents(UNPIN_EVENT_CLOSED);
  EXPECT_EQ(Abandon(connection_), UNPIN_REFUSAL_CLOSING);
  EXPECT_TRUE(TakeEvents(UNPIN_EVENT_CLOSED).empty());
  Connection unknown(*this, {.client_port = 50000});
  EXPECT_EQ(Abandon(unknown), UNPIN_REFUSAL_NOT_FOUND);
}

TEST_F(DeadBackend, AbandonedTupleOpensAgainElsewhere) {
  ASSERT_EQ(Abandon(connection_), UNPIN_REFUSAL_NONE);
  UseBackend(1);
  Connection again(*this, {.client_isn = 5000000, .backend = 1});
  again.Open();
}

TEST_F(DeadBackend, FinWithoutGoawayMakesItSuspect) {
  connection_.ServerSends({.seq = Connection::kHttp2Start, .ack = 77, .flags = kFin | kAck},
                          UNPIN_FORWARD_S2C);
  const std::vector<unpin_event> events = TakeEvents(UNPIN_EVENT_SUSPECT);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].service, kService);
  EXPECT_EQ(events[0].backend, kBackend[0]);
  UseBoth();
  const Counts counts = Steer(UNPIN_REPLY_RESET_NO_BACKEND);
  EXPECT_EQ(counts.refused, 0);
  EXPECT_GE(counts.to[1], 60) << "one in 2^8 finds no other within its attempts";
}

TEST_F(DeadBackend, ResetMakesItSuspectOnce) {
  Connection other(*this, {.client_port = 40001});
  other.Open();
  other.StartHttp2();
  connection_.ServerSends({.seq = Connection::kHttp2Start, .flags = kRst | kAck},
                          UNPIN_FORWARD_S2C);
  other.ServerSends({.seq = Connection::kHttp2Start, .flags = kRst | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_SUSPECT).size(), 1u);
}

TEST_F(DeadBackend, GoodbyeMakesNobodySuspect) {
  const Bytes goaway = http2::Frame(http2::kGoaway, 0, 0, Concat(http2::Word(1), http2::Word(0)));
  connection_.ServerSends(
      {.seq = Connection::kHttp2Start, .ack = 77, .flags = kFin | kAck, .payload = goaway},
      UNPIN_FORWARD_S2C);
  EXPECT_FALSE(IsSuspect(0)) << "GOAWAY and FIN in one segment";
}

TEST_F(DeadBackend, TheEndOfAMovedConnectionMakesNobodySuspect) {
  connection_.Splice();
  connection_.ServerSends(
      {.seq = Connection::kHttp2Start, .ack = 77, .flags = kFin | kAck}, UNPIN_FORWARD_SPLICED,
      {.seq = Connection::kHttp2Start + UNPIN_GOAWAY_LENGTH, .ack = 77, .flags = kFin | kAck});
  EXPECT_FALSE(IsSuspect(0));
}

TEST_F(DeadBackend, ClientThatLeavesMakesNobodySuspect) {
  connection_.ClientSends(
      {.seq = Connection::kClientStart, .ack = Connection::kHttp2Start, .flags = kFin | kAck},
      UNPIN_FORWARD_C2S);
  connection_.ServerSends({.seq = Connection::kHttp2Start, .ack = 78, .flags = kFin | kAck},
                          UNPIN_FORWARD_S2C);
  EXPECT_FALSE(IsSuspect(0));
}

TEST_F(DeadBackend, OpaqueConnectionsMayEndWithoutAWord) {
  Connection opaque(*this, {.client_port = 40001});
  opaque.Open();
  opaque.ClientSends({.ack = 0, .payload = http2::Filler(40)}, UNPIN_FORWARD_C2S);
  opaque.ServerSends({.ack = 40, .flags = kFin | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_FALSE(IsSuspect(0));
}

TEST_F(DeadBackend, RefusedConnectionMakesItSuspect) {
  Connection refused(*this, {.client_port = 40001});
  refused.SendSyn();
  refused.ServerSends({.seq = 0, .ack = 0, .flags = kRst | kAck}, UNPIN_FORWARD_S2C);
  EXPECT_TRUE(IsSuspect(0));
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_SUSPECT).size(), 1u);
}

TEST_F(DeadBackend, SuspectIsTakenWhereThereIsNoOther) {
  ASSERT_TRUE(
      plane_->PutStanding(kBackend[0], {.suspect_until_ns = kFarFuture, .is_capped = 0, .room = 0})
          .ok());
  const Counts counts = Steer(UNPIN_REPLY_RESET_NO_BACKEND);
  EXPECT_EQ(counts.to[0], 64);
}

TEST_F(DeadBackend, PinToASuspectIsPassedOver) {
  ASSERT_TRUE(
      plane_->PutStanding(kBackend[0], {.suspect_until_ns = kFarFuture, .is_capped = 0, .room = 0})
          .ok());
  UseBackend(1);
  unpin_add_pin_args args = {};
  args.key = {.service = kService, .client = htonl(Quad("10.0.0.2"))};
  args.pin = {.expires_ns = kFarFuture, .reserved_until_ns = 0, .backend = kBackend[0], .move = 42};
  ASSERT_TRUE(plane_->AddPin(args).ok());
  Connection next(*this, {.client_port = 40001, .backend = 1});
  next.Open();
  ASSERT_EQ(TakeEvents(UNPIN_EVENT_OPENED).size(), 1u);
}

TEST_F(DeadBackend, FullBackendIsPassedOverUntilItHasRoom) {
  UseBoth();
  ASSERT_TRUE(
      plane_->PutStanding(kBackend[0], {.suspect_until_ns = 0, .is_capped = 1, .room = 5}).ok());
  const Counts counts = Steer(UNPIN_REPLY_RESET_BACKENDS_FULL);
  EXPECT_EQ(counts.to[0], 5);
  EXPECT_GE(counts.to[1], 57) << "one in 2^8 finds no other within its attempts";
  EXPECT_EQ(counts.to[1] + counts.refused, 59);
}

TEST_F(DeadBackend, AllFullIsRefusedAndCounted) {
  for (const uint32_t id : kBackend) {
    ASSERT_TRUE(plane_->PutStanding(id, {.suspect_until_ns = 0, .is_capped = 1, .room = 0}).ok());
  }
  EXPECT_EQ(Steer(UNPIN_REPLY_RESET_BACKENDS_FULL), (Counts{.to = {0, 0}, .refused = 64}));
}

// 100 ms worth of 50 a second may come at once, and the one that is due.
TEST_F(DeadBackend, NewConnectionsOverTheRateAreRefused) {
  const unpin_service_key key = {htonl(Quad(kVip)), htons(kVipPort), IPPROTO_TCP, 0};
  ASSERT_TRUE(
      plane_
          ->PutService(
              key, {.id = kService, .flags = UNPIN_SERVICE_SNAT, .slots = 7, .new_per_second = 50})
          .ok());
  const Counts counts = Steer(UNPIN_REPLY_RESET_OVER_RATE);
  EXPECT_GE(counts.to[0], 6);
  EXPECT_LE(counts.to[0], 12) << "64 frames should not have taken 120 ms";
  EXPECT_EQ(counts.to[0] + counts.refused, 64);
  connection_.ClientSends({.seq = Connection::kClientStart, .ack = Connection::kHttp2Start},
                          UNPIN_FORWARD_C2S);
}

}  // namespace
}  // namespace unpin::testkit
