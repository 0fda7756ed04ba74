// SPDX-License-Identifier: Apache-2.0
// Where and when a connection commits to its GOAWAY, and when it must not.
#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

constexpr uint32_t kStart = Connection::kHttp2Start;
constexpr uint32_t kAsked = Connection::kClientStart;
constexpr uint32_t kDelta = 17;

class Commit : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    connection_.Open();
    connection_.StartHttp2();
    plane_->TakeEvents();
  }
  using Where = std::source_location;
  static Segment From(uint32_t seq, const Bytes& payload, uint8_t flags = kAck) {
    return {.seq = seq, .ack = kAsked, .flags = flags, .payload = payload};
  }
  void Send(uint32_t seq, const Bytes& payload, Where where = Where::current()) {
    connection_.ServerSends(From(seq, payload), UNPIN_FORWARD_S2C, where);
  }
  // Forwarded as it is, and the connection has committed right behind it.
  void SendAndCommit(uint32_t seq, const Bytes& payload, Where where = Where::current()) {
    connection_.ServerSends(From(seq, payload), UNPIN_FORWARD_SPLICED, where);
    ExpectCommitted(seq + static_cast<uint32_t>(payload.size()), where);
  }
  void SendShifted(uint32_t seq, const Bytes& payload, Where where = Where::current()) {
    connection_.ServerSends(From(seq, payload), UNPIN_FORWARD_SPLICED, From(seq + kDelta, payload),
                            where);
  }
  void ExpectCommitted(uint32_t boundary, Where where = Where::current()) {
    const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "commit");
    for (const unpin_flow& flow : {connection_.C2sFlow(), connection_.S2cFlow()}) {
      EXPECT_EQ(flow.splice.state, UNPIN_SPLICE_COMMITTED);
      EXPECT_EQ(flow.splice.boundary - connection_.server_first(), boundary);
    }
    const std::vector<unpin_event> events = TakeEvents(UNPIN_EVENT_COMMITTED);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].sequence - connection_.server_first(), boundary);
  }
  uint32_t State() { return connection_.S2cFlow().splice.state; }
  // In the middle of a frame of 100 bytes, so that the connection is armed and cannot commit yet.
  void ArmMidFrame(bool allow_trim) {
    Send(kStart, Slice(Message(), 0, 50));
    const unpin_arm_args args = connection_.Arm(allow_trim);
    ASSERT_EQ(args.refusal, UNPIN_REFUSAL_NONE);
    ASSERT_EQ(args.state, allow_trim ? UNPIN_SPLICE_ARMED_TRIM : UNPIN_SPLICE_ARMED);
  }
  static Bytes Message() { return http2::Data(1, 91); }
  static Bytes RestAnd(const Bytes& more) { return Concat(Slice(Message(), 50, 100), more); }

  Connection connection_{*this};
};

TEST_F(Commit, ABusyConnectionCommitsBehindAPacketThatEndsAFrame) {
  ArmMidFrame(false);
  Send(kStart + 50, Slice(Message(), 50, 99));
  SendAndCommit(kStart + 99, Slice(Message(), 99, 100));
  SendShifted(kStart + 100, http2::Ping());
}

TEST_F(Commit, ABoundaryInsideAPacketIsNotTakenUnlessAsked) {
  ArmMidFrame(false);
  Send(kStart + 50, RestAnd(Slice(http2::Ping(), 0, 5)));
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED);
}

TEST_F(Commit, ATrimmedPacketEndsAtTheLastBoundaryAndTheTailComesAgain) {
  for (const uint32_t tail : {1u, 8u, 9u, 10u, 40u}) {
    SCOPED_TRACE(tail);
    const auto port = static_cast<uint16_t>(43000 + tail);
    Connection connection(*this, {.client_port = port});
    connection.Open();
    connection.StartHttp2();
    const Bytes frames = Concat(http2::Headers(3), http2::Data(3, 30), http2::Data(3, 100));
    const uint32_t cut = frames.size() - 109;
    connection.ServerSends(From(kStart, Slice(frames, 0, 10)), UNPIN_FORWARD_S2C);
    ASSERT_EQ(connection.Arm(true).state, UNPIN_SPLICE_ARMED_TRIM);
    connection.ServerSends(From(kStart + 10, Slice(frames, 10, cut + tail)), UNPIN_FORWARD_TRIMMED,
                           From(kStart + 10, Slice(frames, 10, cut)));
    EXPECT_EQ(connection.S2cFlow().splice.boundary - connection.server_first(), kStart + cut);
    EXPECT_EQ(TakeEvents(UNPIN_EVENT_COMMITTED).size(), 1u);
    // The server goes on, then repeats what the client did not get.
    const Bytes rest = Slice(frames, cut + tail, frames.size());
    connection.ServerSends(From(kStart + cut + tail, rest), UNPIN_FORWARD_SPLICED,
                           From(kStart + cut + tail + kDelta, rest));
    const Bytes again = Slice(frames, cut, frames.size());
    connection.ServerSends(From(kStart + cut, again), UNPIN_FORWARD_SPLICED,
                           From(kStart + cut + kDelta, again));
    plane_->TakeCaptures();
  }
}

// Later bytes have reached the client untranslated: a boundary before them is no longer free.
TEST_F(Commit, NoTrimBehindBytesThatAreAlreadyOut) {
  ArmMidFrame(true);
  const Bytes next = http2::Data(1, 991);
  Send(kStart + 600, Slice(next, 500, 600));  // overtakes; no header in it, as far as is known
  connection_.ServerSends(From(kStart + 50, RestAnd(Slice(next, 0, 300))), UNPIN_FORWARD_S2C);
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED_TRIM);
}

TEST_F(Commit, NoBoundaryInsideAnOpenHeaderBlock) {
  using namespace http2;
  ArmMidFrame(true);
  const Bytes block = Concat(Headers(3, 0, 30), Continuation(3, 0, 20));
  // The last boundary is in front of the block, not inside it.
  const Bytes sent = RestAnd(Concat(block, Slice(Continuation(3), 0, 4)));
  connection_.ServerSends(From(kStart + 50, sent), UNPIN_FORWARD_TRIMMED,
                          From(kStart + 50, RestAnd({})));
  ExpectCommitted(kStart + 100);
}

// ---- never ----

TEST_F(Commit, NotWithTheServersFin) {
  ArmMidFrame(true);
  connection_.ServerSends(From(kStart + 50, RestAnd({}), kAck | kFin), UNPIN_FORWARD_S2C);
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED_TRIM);
  EXPECT_EQ(connection_.Arm().refusal, UNPIN_REFUSAL_CLOSING);
}

TEST_F(Commit, NotAfterTheClientsFin) {
  ArmMidFrame(true);
  connection_.ClientSends({.seq = kAsked, .ack = kStart, .flags = kFin | kAck}, UNPIN_FORWARD_C2S);
  Send(kStart + 50, RestAnd({}));
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED_TRIM);
}

TEST_F(Commit, NotWithAReset) {
  ArmMidFrame(true);
  connection_.ServerSends(From(kStart + 50, {}, kRst | kAck), UNPIN_FORWARD_S2C);
  Send(kStart + 50, RestAnd({}));
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED_TRIM);
}

TEST_F(Commit, NotAfterTheServersGoaway) {
  Send(kStart, http2::Goaway(1));
  EXPECT_EQ(connection_.Arm(true).refusal, UNPIN_REFUSAL_SERVER_GOAWAY);
}

TEST_F(Commit, NotBehindAServersGoawayThatComesWhileArmed) {
  ArmMidFrame(false);
  Send(kStart + 50, RestAnd(http2::Goaway()));
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED);
  Send(kStart + 117, http2::Ping());
  EXPECT_EQ(State(), UNPIN_SPLICE_ARMED);
  EXPECT_EQ(connection_.Arm().refusal, UNPIN_REFUSAL_SERVER_GOAWAY);
}

// In front of the server's own it may stand: last stream ids may fall, never rise (RFC 9113 section 6.8), and ours is the highest.
TEST_F(Commit, ATrimMayStandInFrontOfTheServersGoaway) {
  ArmMidFrame(true);
  connection_.ServerSends(From(kStart + 50, RestAnd(http2::Goaway(1))), UNPIN_FORWARD_TRIMMED,
                          From(kStart + 50, RestAnd({})));
  ExpectCommitted(kStart + 100);
  SendShifted(kStart + 100, http2::Goaway(1));
}

TEST_F(Commit, TheServersGoawayAfterOursGoesThrough) {
  connection_.Splice();
  SendShifted(kStart, http2::Goaway());
  SendShifted(kStart + 17, Concat(http2::Data(1, 5), http2::Goaway(1)));
}

TEST_F(Commit, NotTwice) {
  connection_.Splice();
  EXPECT_EQ(connection_.Arm().refusal, UNPIN_REFUSAL_ALREADY_MOVED);
  connection_.ClientSends({.seq = kAsked, .ack = kStart + kDelta}, UNPIN_FORWARD_SPLICED,
                          {.seq = kAsked, .ack = kStart});
  EXPECT_EQ(connection_.Arm().refusal, UNPIN_REFUSAL_ALREADY_MOVED);
}

TEST_F(Commit, NotBeforeItsTime) {
  EXPECT_EQ(connection_.Arm(false, /*min_age_ns=*/uint64_t{1} << 62).refusal,
            UNPIN_REFUSAL_TOO_YOUNG);
}

TEST_F(Commit, DisarmedItGoesOnAsBefore) {
  ArmMidFrame(true);
  unpin_arm_args args = {};
  args.s2c = connection_.s2c();
  ASSERT_EQ(plane_->DisarmGoaway(args)->state, UNPIN_SPLICE_NONE);
  Send(kStart + 50, RestAnd(http2::Ping()));
  EXPECT_EQ(State(), UNPIN_SPLICE_NONE);
}

// ---- what the GOAWAY will carry: the newest numbers of the server ----

using NewestNumbers = Commit;

// PAWS (RFC 7323 section 5): a GOAWAY with an older timestamp than the client has seen would be thrown away, every time.
TEST_F(NewestNumbers, AnOvertakenPacketDoesNotBringOldTimestampsBack) {
  const auto send = [&](uint32_t seq, uint32_t ack, uint32_t tsval) {
    connection_.ServerSends({.seq = seq, .ack = ack, .timestamp = {{tsval, 9}}, .payload = {0}},
                            UNPIN_FORWARD_S2C);
  };
  send(kStart + 1, kAsked, 5000);
  send(kStart, kAsked, 4990);
  EXPECT_EQ(connection_.S2cFlow().tcp.tsval, 5000u);
  send(kStart, kAsked, 5010);  // repeated with a fresh one
  EXPECT_EQ(connection_.S2cFlow().tcp.tsval, 5010u);
  send(kStart, kAsked - 1, 5005);
  EXPECT_EQ(connection_.S2cFlow().tcp.tsval, 5010u);
  EXPECT_EQ(connection_.S2cFlow().tcp.ack - connection_.client_first(), kAsked);
}

TEST_F(NewestNumbers, TimestampsWrap) {
  const auto send = [&](uint32_t tsval) {
    connection_.ServerSends({.seq = kStart, .ack = kAsked, .timestamp = {{tsval, 9}}},
                            UNPIN_FORWARD_S2C);
  };
  send(0xfffffff0);
  send(5);
  EXPECT_EQ(connection_.S2cFlow().tcp.tsval, 5u);
  send(0xfffffff8);
  EXPECT_EQ(connection_.S2cFlow().tcp.tsval, 5u);
}

// A RST may acknowledge nothing and carries no timestamp; resends of a GOAWAY go on after it.
TEST_F(NewestNumbers, AResetBringsNone) {
  Connection connection(*this, {.client_port = 40009, .client_isn = 3000000000});
  connection.Open();
  connection.StartHttp2();
  connection.ServerSends({.seq = kStart, .ack = kAsked, .timestamp = {{5000, 9}}},
                         UNPIN_FORWARD_S2C);
  const unpin_tcp_state before = connection.S2cFlow().tcp;
  connection.ServerSends({.seq = kStart, .flags = kRst, .window = 0}, UNPIN_FORWARD_S2C);
  connection.ServerSends({.seq = kStart, .ack = kAsked, .flags = kRst | kAck, .window = 0},
                         UNPIN_FORWARD_S2C);
  const unpin_tcp_state after = connection.S2cFlow().tcp;
  EXPECT_EQ(memcmp(&before, &after, sizeof(before)), 0);
}

}  // namespace
}  // namespace unpin::testkit
