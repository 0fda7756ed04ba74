// SPDX-License-Identifier: Apache-2.0
// A spliced connection, packet by packet: what its client acknowledges, of and around the GOAWAY.
#include <gtest/gtest.h>

#include "tests/bpf/spliced.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

using Blocks = std::vector<std::pair<uint32_t, uint32_t>>;

class SplicedAck : public Spliced {
 protected:
  // Client space in, server space out; no blocks out: the option has become NOPs.
  void ClientSacks(uint32_t ack, const Blocks& blocks, uint32_t ack_out, const Blocks& blocks_out,
                   Where where = Where::current()) {
    const Segment in = {.seq = kAsked, .ack = ack, .timestamp = {{70, 80}}, .sack = blocks};
    Segment out = in;
    out.ack = ack_out;
    out.sack = blocks_out;
    Bytes arrives = connection_->ToServer(out);
    if (blocks_out.size() < blocks.size()) arrives = WithNops(in, out, blocks_out.size());
    ExpectRun(connection_->FromClient(in), connection_->client_ifindex(), UNPIN_FORWARD_SPLICED,
              XDP_REDIRECT, arrives, where);
  }
  // Dropped blocks leave NOPs behind, and the last of them takes the option's own two bytes along.
  Bytes WithNops(const Segment& in, const Segment& out, size_t kept) const {
    const size_t dropped = in.sack.size() - kept;
    Segment bare = out;
    bare.sack = {};
    bare.timestamp = {};
    bare.options = Concat(Nop(2), Timestamp(in.timestamp->first, in.timestamp->second), Nop(2));
    if (kept > 0) {
      bare.options = Concat(bare.options, Bytes{5, static_cast<uint8_t>(2 + 8 * kept)});
      for (const auto& [left, right] : out.sack) {
        bare.options = Concat(bare.options, http2::Word(left + connection_->server_first()),
                              http2::Word(right + connection_->server_first()));
      }
    }
    bare.options = Concat(bare.options, Nop(8 * dropped + (kept > 0 ? 0 : 2)));
    return connection_->ToServer(bare);
  }
};

TEST_F(SplicedAck, OfAnyByteOfTheGoawayIsTheBoundary) {
  ClientAcks(kBoundary - 1, kBoundary - 1);
  for (uint32_t ack = kBoundary; ack < kBoundary + kDelta; ++ack) ClientAcks(ack, kBoundary);
  EXPECT_EQ(State(), UNPIN_SPLICE_COMMITTED);
  EXPECT_TRUE(TakeEvents(UNPIN_EVENT_ACKNOWLEDGED).empty());
  ClientAcks(kBoundary + kDelta, kBoundary);
  EXPECT_EQ(State(), UNPIN_SPLICE_ACKNOWLEDGED);
  EXPECT_EQ(connection_->C2sFlow().splice.state, UNPIN_SPLICE_ACKNOWLEDGED);
}

TEST_F(SplicedAck, BeyondTheGoawayIsSeventeenLess) {
  ServerSends(kBoundary, http2::Data(1, 991));
  ClientAcks(kBoundary + kDelta + 1, kBoundary + 1);
  ClientAcks(kBoundary + kDelta + 1000, kBoundary + 1000);
  ClientAcks(kBoundary + kDelta, kBoundary);  // overtaken
  ClientAcks(kBoundary - 50, kBoundary - 50);
}

TEST_F(SplicedAck, IsToldOnce) {
  Acknowledge();
  Acknowledge();
  const std::vector<unpin_event> events = TakeEvents(UNPIN_EVENT_ACKNOWLEDGED);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].sequence - connection_->server_first(), kBoundary);
}

TEST_F(SplicedAck, WithDataIsTranslatedLikewise) {
  const Bytes request = http2::Headers(3, http2::kEndHeaders | http2::kEndStream);
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary + kDelta, .payload = request},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kAsked, .ack = kBoundary, .payload = request});
  EXPECT_EQ(connection_->C2sFlow().follower.last_stream, 3u);
}

// The window belongs to the acknowledgement: it goes on unchanged, closed or full. A closed one does not stop the GOAWAY from
// being acknowledged later.
TEST_F(SplicedAck, WindowsAreLeftAlone) {
  for (const uint16_t window : {0, 1, 17, 65535}) {
    SCOPED_TRACE(window);
    connection_->ClientSends({.seq = kAsked, .ack = kBoundary, .window = window},
                             UNPIN_FORWARD_SPLICED);
    EXPECT_EQ(State(), UNPIN_SPLICE_COMMITTED);
  }
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary + kDelta, .window = 0},
                           UNPIN_FORWARD_SPLICED, {.seq = kAsked, .ack = kBoundary, .window = 0});
  EXPECT_EQ(State(), UNPIN_SPLICE_ACKNOWLEDGED);
}

// The client's window was full when the GOAWAY took the place of the server's next 17 bytes: a server that uses the window up sends
// beyond what the client takes now, and sends it again when the window has moved.
TEST_F(SplicedAck, AWindowFullAtTheBoundaryOpensAgain) {
  const Bytes data = http2::Data(1, 491);
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary, .window = 500}, UNPIN_FORWARD_SPLICED);
  ServerSends(kBoundary, data);  // the last 17 of its 500 bytes are beyond the window
  connection_->ClientSends({.seq = kAsked, .ack = kBoundary + 500, .window = 0},
                           UNPIN_FORWARD_SPLICED,
                           {.seq = kAsked, .ack = kBoundary + 500 - kDelta, .window = 0});
  ServerSends(kBoundary + 500 - kDelta, Slice(data, 500 - kDelta, 500));
  ClientAcks(kBoundary + kDelta + 500, kBoundary + 500);
}

// ---- SACK, RFC 2018 ----

TEST_F(SplicedAck, SackBeforeTheBoundaryIsLeftAlone) {
  ClientSacks(kBoundary - 100, {{kBoundary - 50, kBoundary}}, kBoundary - 100,
              {{kBoundary - 50, kBoundary}});
  ClientSacks(kBoundary - 100, {{kBoundary - 30, kBoundary - 10}, {kBoundary - 70, kBoundary - 50}},
              kBoundary - 100,
              {{kBoundary - 30, kBoundary - 10}, {kBoundary - 70, kBoundary - 50}});
}

// The client lacks the GOAWAY and has what is behind it. To the server nothing is missing: told of bytes beyond a hole that it
// knows nothing of, it would see the client go back on its word. It hears nothing; the agent is told.
TEST_F(SplicedAck, SackBeyondAHoleAtTheBoundaryIsHidden) {
  ClientSacks(kBoundary, {{kBoundary + 17, kBoundary + 117}}, kBoundary, {});
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_HOLE).size(), 1u);
  for (int i = 0; i < 7; ++i)
    ClientSacks(kBoundary, {{kBoundary + 17, kBoundary + 217}}, kBoundary, {});
  EXPECT_TRUE(TakeEvents(UNPIN_EVENT_HOLE).empty());  // one report in eight
  ClientSacks(kBoundary, {{kBoundary + 17, kBoundary + 317}}, kBoundary, {});
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_HOLE).size(), 1u);
}

TEST_F(SplicedAck, OfSeveralBlocksOnlyThoseBeyondTheHoleAreHidden) {
  ClientSacks(kBoundary - 100, {{kBoundary + 17, kBoundary + 117}, {kBoundary - 50, kBoundary}},
              kBoundary - 100, {{kBoundary - 50, kBoundary}});
  ClientSacks(kBoundary - 100,
              {{kBoundary - 50, kBoundary},
               {kBoundary + 17, kBoundary + 117},
               {kBoundary + 200, kBoundary + 300}},
              kBoundary - 100, {{kBoundary - 50, kBoundary}});
}

// A block over the whole GOAWAY: to the server it is the bytes around it.
TEST_F(SplicedAck, SackAcrossTheGoawayClosesUp) {
  ClientSacks(kBoundary - 100, {{kBoundary - 50, kBoundary + 17}}, kBoundary - 100,
              {{kBoundary - 50, kBoundary}});
  ClientSacks(kBoundary - 100, {{kBoundary - 50, kBoundary + 117}}, kBoundary - 100,
              {{kBoundary - 50, kBoundary + 100}});
}

TEST_F(SplicedAck, SackBeyondAnAcknowledgedGoawayIsSeventeenLess) {
  Acknowledge();
  ClientSacks(kBoundary + 17, {{kBoundary + 117, kBoundary + 217}}, kBoundary,
              {{kBoundary + 100, kBoundary + 200}});
  ClientSacks(kBoundary + 37,
              {{kBoundary + 117, kBoundary + 217},
               {kBoundary + 57, kBoundary + 77},
               {kBoundary + 317, kBoundary + 417}},
              kBoundary + 20,
              {{kBoundary + 100, kBoundary + 200},
               {kBoundary + 40, kBoundary + 60},
               {kBoundary + 300, kBoundary + 400}});
  EXPECT_TRUE(TakeEvents(UNPIN_EVENT_HOLE).empty());
}

// The GOAWAY was sent twice and both arrived: a D-SACK (RFC 2883) of bytes the server never sent is no news to it.
TEST_F(SplicedAck, DsackOfTheGoawayBecomesNops) {
  ClientSacks(kBoundary + 17, {{kBoundary, kBoundary + 17}}, kBoundary, {});
  EXPECT_EQ(State(), UNPIN_SPLICE_ACKNOWLEDGED);
  ClientSacks(kBoundary + 17, {{kBoundary, kBoundary + 17}}, kBoundary, {});
  ClientSacks(kBoundary + 17, {{kBoundary + 3, kBoundary + 9}}, kBoundary, {});
  ClientSacks(kBoundary + 17, {{kBoundary, kBoundary + 17}, {kBoundary + 117, kBoundary + 217}},
              kBoundary, {{kBoundary + 100, kBoundary + 200}});
}

TEST_F(SplicedAck, DsackAroundTheGoawayNamesTheServersBytes) {
  Acknowledge();
  ClientSacks(kBoundary + 117, {{kBoundary - 20, kBoundary}}, kBoundary + 100,
              {{kBoundary - 20, kBoundary}});
  ClientSacks(kBoundary + 117, {{kBoundary + 17, kBoundary + 57}}, kBoundary + 100,
              {{kBoundary, kBoundary + 40}});
  ClientSacks(kBoundary + 117, {{kBoundary - 20, kBoundary + 57}}, kBoundary + 100,
              {{kBoundary - 20, kBoundary + 40}});
}

TEST_F(SplicedAck, MalformedSackIsLeftAsItIs) {
  for (const uint8_t length : {2, 9, 11, 12, 17, 19}) {
    SCOPED_TRACE(static_cast<int>(length));
    Bytes sack(length, 0xee);
    sack[0] = 5;
    sack[1] = length;
    connection_->ClientSends({.seq = kAsked, .ack = kBoundary, .options = sack},
                             UNPIN_FORWARD_SPLICED);
  }
}

}  // namespace
}  // namespace unpin::testkit
