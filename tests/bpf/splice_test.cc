// SPDX-License-Identifier: Apache-2.0
// A spliced connection, packet by packet: what its server sends, repeats and ends with.
#include <gtest/gtest.h>

#include "tests/bpf/spliced.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

using http2::Filler;

TEST_F(Spliced, RepeatedBytesBeforeTheBoundaryStayWhereTheyAre) {
  ServerSends(kBoundary - 9, Filler(9));
  Acknowledge();
  ServerSends(kBoundary - 9, Filler(9));
}

TEST_F(Spliced, NewBytesFollowTheGoaway) {
  ServerSends(kBoundary, http2::Ping());
  Acknowledge();
  ServerSends(kBoundary + 17, http2::Data(1, 200));
}

// Out of order and twice: each segment has its one place, whatever came before.
TEST_F(Spliced, DisorderAndDuplicatesAroundTheBoundary) {
  const Bytes after = http2::Data(1, 91);  // 100 bytes from the boundary on
  const auto late = [&](uint32_t from, uint32_t to) {
    ServerSends(kBoundary + from, Slice(after, from, to));
  };
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round == 0 ? "not acknowledged" : "acknowledged");
    late(60, 100);
    ServerSends(kBoundary - 40, Filler(40));
    late(0, 30);
    late(0, 30);
    late(30, 60);
    ServerSends(kBoundary - 80, Filler(40));
    ServerSends(kBoundary - 1, Filler(1));
    late(0, 1);
    late(0, 100);
    if (round == 0) Acknowledge();
  }
}

// The server may cut its bytes anew when it repeats them (RFC 9293 section 3.10.8): what straddles the boundary ends there, so
// that the GOAWAY can stand between. Lengths odd and even: the checksum of what is cut off depends on its place.
TEST_F(Spliced, ARetransmissionAcrossTheBoundaryIsCutThere) {
  for (const auto& [before, after] : std::vector<std::pair<uint32_t, uint32_t>>{
           {1, 1}, {1, 2}, {2, 1}, {9, 200}, {64, 64}, {65, 63}, {100, 1300}}) {
    SCOPED_TRACE(testing::Message() << before << " before, " << after << " after");
    const Bytes payload = Filler(before + after);
    for (const int flags : {+kAck, kAck | kPsh}) {
      connection_->ServerSends({.seq = kBoundary - before,
                                .ack = kAsked,
                                .flags = static_cast<uint8_t>(flags),
                                .payload = payload},
                               UNPIN_FORWARD_TRIMMED,
                               {.seq = kBoundary - before,
                                .ack = kAsked,
                                .flags = static_cast<uint8_t>(flags),
                                .payload = Slice(payload, 0, before)});
    }
  }
}

TEST_F(Spliced, ACutKeepsOptionsAndTimestamps) {
  const Segment again = {
      .seq = kBoundary - 3, .ack = kAsked, .timestamp = {{900, 800}}, .payload = Filler(8)};
  Segment cut = again;
  cut.payload.resize(3);
  connection_->ServerSends(again, UNPIN_FORWARD_TRIMMED, cut);
}

// What Ethernet padded is cut off as well.
TEST_F(Spliced, ACutFrameEndsAtTheBoundaryPaddingOrNot) {
  const Segment again = {.seq = kBoundary - 2, .ack = kAsked, .payload = Filler(4)};
  Segment cut = again;
  cut.payload.resize(2);
  ExpectRun(Concat(connection_->FromServer(again), Bytes(2, 0xcc)), connection_->server_ifindex(),
            UNPIN_FORWARD_TRIMMED, XDP_REDIRECT, connection_->ToClient(cut));
}

// Once the client has the GOAWAY, such a segment is shifted whole: it discards what it has, and takes the rest.
TEST_F(Spliced, ARetransmissionAcrossTheBoundaryIsShiftedOnceAcknowledged) {
  Acknowledge();
  for (const uint32_t before : {1u, 16u, 17u, 18u, 100u}) {
    SCOPED_TRACE(before);
    const Bytes payload = Filler(before + 50);
    connection_->ServerSends(
        {.seq = kBoundary - before, .ack = kAsked, .payload = payload}, UNPIN_FORWARD_SPLICED,
        {.seq = kBoundary - before + kDelta, .ack = kAsked, .payload = payload});
  }
}

TEST_F(Spliced, MtuSizedSegmentsKeepTheirSize) {
  const Bytes full = http2::Data(1, 1448 - 9);
  for (uint32_t i = 0; i < 3; ++i) ServerSends(kBoundary + i * 1448, full);
  const Bytes straddling = Filler(1448);
  connection_->ServerSends(
      {.seq = kBoundary - 1000, .ack = kAsked, .payload = straddling}, UNPIN_FORWARD_TRIMMED,
      {.seq = kBoundary - 1000, .ack = kAsked, .payload = Slice(straddling, 0, 1000)});
}

TEST_F(Spliced, AJumboSegmentIsCutToo) {
  const Bytes payload = Filler(3300);
  connection_->ServerSends(
      {.seq = kBoundary - 100, .ack = kAsked, .payload = payload}, UNPIN_FORWARD_TRIMMED,
      {.seq = kBoundary - 100, .ack = kAsked, .payload = Slice(payload, 0, 100)});
}

// ---- keepalive and zero-window probes: one before the next number, RFC 9293 section 3.8.4, with no byte or an old one ----

TEST_F(Spliced, AKeepaliveOfTheServerStaysAnOldNumber) {
  ServerSends(kBoundary - 1, {});
  ServerSends(kBoundary - 1, {0});
  Acknowledge();
  ServerSends(kBoundary - 1, {});
  ServerSends(kBoundary, http2::Ping());
  ServerSends(kBoundary + 16, {});
  ServerSends(kBoundary + 16, {0});
}

TEST_F(Spliced, AKeepaliveOfTheClientReachesTheServer) {
  for (const uint32_t ack : {kBoundary, kBoundary + kDelta}) {
    connection_->ClientSends({.seq = kAsked - 1, .ack = ack}, UNPIN_FORWARD_SPLICED,
                             {.seq = kAsked - 1, .ack = kBoundary});
    connection_->ClientSends({.seq = kAsked - 1, .ack = ack, .payload = {0}}, UNPIN_FORWARD_SPLICED,
                             {.seq = kAsked - 1, .ack = kBoundary, .payload = {0}});
  }
}

// A probe with data sends the first byte beyond the window: here the first beyond the GOAWAY.
TEST_F(Spliced, AZeroWindowProbeWithAByteIsShifted) {
  ServerSends(kBoundary, Bytes{0});
  Acknowledge();
  ServerSends(kBoundary, Bytes{0});
}

// ---- the end ----

TEST_F(Spliced, FinAtTheBoundaryFollowsTheGoaway) {
  connection_->ServerSends({.seq = kBoundary, .ack = 77, .flags = kFin | kAck},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kBoundary + kDelta, .ack = 77, .flags = kFin | kAck});
}

// The FIN counts as the byte after the boundary: it must not end the client's stream before the GOAWAY.
TEST_F(Spliced, FinBehindRepeatedBytesIsCutOffUntilTheClientHasTheGoaway) {
  const Segment again = {
      .seq = kBoundary - 9, .ack = 77, .flags = kFin | kPsh | kAck, .payload = Filler(9)};
  Segment cut = again;
  cut.flags = kPsh | kAck;
  connection_->ServerSends(again, UNPIN_FORWARD_TRIMMED, cut);

  Acknowledge();
  Segment shifted = again;
  shifted.seq += kDelta;
  connection_->ServerSends(again, UNPIN_FORWARD_SPLICED, shifted);
}

TEST_F(Spliced, TheClientsAckOfAFinReachesTheServer) {
  connection_->ServerSends({.seq = kBoundary, .ack = kAsked, .flags = kFin | kAck},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kBoundary + kDelta, .ack = kAsked, .flags = kFin | kAck});
  ClientAcks(kBoundary, kBoundary);  // the GOAWAY is lost, and so the FIN waits
  EXPECT_EQ(State(), UNPIN_SPLICE_COMMITTED);
  ClientAcks(kBoundary + kDelta + 1, kBoundary + 1);
  EXPECT_EQ(State(), UNPIN_SPLICE_ACKNOWLEDGED);
}

// RFC 5961: a RST counts only at exactly the next number, and the client's is beyond the GOAWAY once it has it. Until then it
// answers with an ACK, which makes the server repeat the RST.
TEST_F(Spliced, ResetAtTheBoundaryFollowsTheGoaway) {
  const auto reset = [&] {
    connection_->ServerSends({.seq = kBoundary, .flags = kRst}, UNPIN_FORWARD_SPLICED,
                             {.seq = kBoundary + kDelta, .flags = kRst});
  };
  reset();
  ClientAcks(kBoundary, kBoundary);  // the challenge
  reset();
  Acknowledge();
  reset();
  connection_->ServerSends({.seq = kBoundary, .ack = kAsked, .flags = kRst | kAck},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kBoundary + kDelta, .ack = kAsked, .flags = kRst | kAck});
}

TEST_F(Spliced, ResetOfTheClientReachesTheServer) {
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary + kDelta, .flags = kRst | kAck},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kAsked, .ack = kBoundary, .flags = kRst | kAck});
  Begin({.client_port = 40001});
  connection_->ClientSends({.seq = kAsked, .flags = kRst},
                           UNPIN_FORWARD_SPLICED);  // names no number of the server
}

TEST_F(Spliced, SimultaneousClose) {
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary, .flags = kFin | kAck},
                           UNPIN_FORWARD_SPLICED);
  connection_->ServerSends({.seq = kBoundary, .ack = kAsked, .flags = kFin | kAck},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kBoundary + kDelta, .ack = kAsked, .flags = kFin | kAck});
  connection_->ClientSends({.seq = kAsked + 1, .ack = kBoundary + kDelta + 1},
                           UNPIN_FORWARD_SPLICED, {.seq = kAsked + 1, .ack = kBoundary + 1});
  connection_->ServerSends({.seq = kBoundary + 1, .ack = kAsked + 1}, UNPIN_FORWARD_SPLICED,
                           {.seq = kBoundary + 1 + kDelta, .ack = kAsked + 1});
}

}  // namespace
}  // namespace unpin::testkit
