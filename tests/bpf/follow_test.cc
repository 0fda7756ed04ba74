// SPDX-License-Identifier: Apache-2.0
// Where the frames of a connection stand, however its bytes come: cut anywhere, again, too early, or not HTTP/2 at all.
#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

class Following : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    connection_.Open();
  }
  unpin_follower Server() { return connection_.S2cFlow().follower; }
  uint32_t ServerNext() { return Server().next_header - connection_.server_first(); }
  uint32_t ClientNext() {
    return connection_.C2sFlow().follower.next_header - connection_.client_first();
  }
  void ServerSays(uint32_t seq, const Bytes& payload,
                  std::source_location where = std::source_location::current()) {
    connection_.ServerSends({.seq = seq, .ack = 77, .payload = payload}, UNPIN_FORWARD_S2C, where);
  }
  void ClientSays(uint32_t seq, const Bytes& payload,
                  std::source_location where = std::source_location::current()) {
    connection_.ClientSends({.seq = seq, .payload = payload}, UNPIN_FORWARD_C2S, where);
  }
  uint32_t Refusal() { return connection_.Arm(/*allow_trim=*/true).refusal; }

  Connection connection_{*this};
};

TEST_F(Following, HeadersComeOneByteAtATime) {
  using namespace http2;
  const Bytes request =
      Concat(Preface(), Settings(), Headers(1, kEndHeaders | kEndStream), SettingsAck());
  const Bytes response =
      Concat(Settings(), SettingsAck(), Headers(1), Data(1, 30, kEndStream), Ping());
  for (uint32_t i = 0; i < request.size(); ++i) ClientSays(i, {request[i]});
  for (uint32_t i = 0; i < response.size(); ++i) ServerSays(i, {response[i]});
  EXPECT_EQ(ClientNext(), request.size());
  EXPECT_EQ(ServerNext(), response.size());
  EXPECT_EQ(Server().streams_ended, 1u);
  EXPECT_EQ(connection_.C2sFlow().follower.last_stream, 1u);
  const unpin_arm_args args = connection_.Arm();
  EXPECT_EQ(args.state, UNPIN_SPLICE_COMMITTED);
  EXPECT_EQ(args.boundary - connection_.server_first(), response.size());
}

// Two segments, the cut at every place of every header.
TEST_F(Following, EveryCutOfAHeaderEndsAtTheSamePlace) {
  using namespace http2;
  const Bytes response = Concat(Settings(), Headers(1, 0, 5), Continuation(1, kEndHeaders, 3),
                                Data(1, 4, kEndStream), WindowUpdate(0, 1000));
  for (uint32_t cut = 1; cut < response.size(); ++cut) {
    SCOPED_TRACE(cut);
    const auto port = static_cast<uint16_t>(42000 + cut);
    Connection connection(*this, {.client_port = port, .server_isn = 0xffffffe0});
    connection.Open();
    connection.ServerSends({.payload = Slice(response, 0, cut)}, UNPIN_FORWARD_S2C);
    connection.ServerSends({.seq = cut, .payload = Slice(response, cut, response.size())},
                           UNPIN_FORWARD_S2C);
    const unpin_follower f = connection.S2cFlow().follower;
    ASSERT_EQ(f.next_header - connection.server_first(), response.size());
    ASSERT_EQ(f.epoch, 0u);
    ASSERT_EQ(f.partial_length, 0);
    ASSERT_EQ(f.streams_ended, 1u);
  }
}

TEST_F(Following, RepeatedSegmentsCountOnce) {
  using namespace http2;
  connection_.StartHttp2();
  const Bytes response = Concat(Headers(3), Data(3, 50, kEndStream));
  const uint32_t at = Connection::kHttp2Start;
  ServerSays(at, response);
  const unpin_follower once = Server();
  ServerSays(at, response);
  ServerSays(at + 10, Slice(response, 10, 60));  // cut otherwise
  EXPECT_EQ(Server().streams_ended, once.streams_ended);
  EXPECT_EQ(Server().next_header, once.next_header);
  EXPECT_EQ(Server().epoch, 0u);
  EXPECT_TRUE(plane_->TakeCaptures().empty());
}

// Old and new bytes in one segment: the new ones are followed.
TEST_F(Following, ALongerRetransmissionIsFollowedFromWhereItIsNew) {
  using namespace http2;
  connection_.StartHttp2();
  const uint32_t at = Connection::kHttp2Start;
  const Bytes stream =
      Concat(Headers(3), Data(3, 50), Data(3, 9, kEndStream), Headers(5), Data(5, 5, kEndStream));
  ServerSays(at, Slice(stream, 0, 40));
  ServerSays(at + 20, Slice(stream, 20, stream.size()));
  EXPECT_EQ(ServerNext(), at + stream.size());
  EXPECT_EQ(Server().streams_ended, 3u);
}

// Bytes inside a frame may be missing or come in any order: there is no header among them.
TEST_F(Following, DisorderInsideAFrameIsNoGap) {
  using namespace http2;
  connection_.StartHttp2();
  const uint32_t at = Connection::kHttp2Start;
  const Bytes frame = Data(1, 3000);
  ServerSays(at, Slice(frame, 0, 1000));
  ServerSays(at + 2000, Slice(frame, 2000, 3000));
  ServerSays(at + 1000, Slice(frame, 1000, 2000));
  EXPECT_EQ(Server().epoch, 0u);
  EXPECT_EQ(ServerNext(), at + frame.size());
  EXPECT_EQ(ServerNext() + connection_.server_first() - Server().highest_seen, 9u);
}

// A header that was overtaken: the packet is forwarded all the same, and its bytes go to the agent.
TEST_F(Following, AnOvertakenHeaderMakesAGap) {
  using namespace http2;
  connection_.StartHttp2();
  const uint32_t at = Connection::kHttp2Start;
  ServerSays(at + 17, Ping());
  EXPECT_NE(Server().epoch, 0u);
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_BEHIND);
  const std::vector<unpin_capture> captures = plane_->TakeCaptures();
  ASSERT_EQ(captures.size(), 1u);
  EXPECT_EQ(captures[0].start.next_header - connection_.server_first(), at);
  EXPECT_EQ(captures[0].sequence - connection_.server_first(), at + 17);
  EXPECT_EQ(Bytes(captures[0].bytes, captures[0].bytes + captures[0].length), Ping());
}

TEST_F(Following, AnOpenHeaderBlockIsNoBoundary) {
  using namespace http2;
  connection_.StartHttp2();
  uint32_t at = Connection::kHttp2Start;
  for (const Bytes& frame : {Headers(3, 0, 30), Continuation(3, 0, 20)}) {
    ServerSays(at, frame);
    at += frame.size();
    const unpin_arm_args args = connection_.Arm(/*allow_trim=*/true);
    ASSERT_EQ(args.refusal, UNPIN_REFUSAL_NONE);
    EXPECT_EQ(args.state, UNPIN_SPLICE_ARMED_TRIM);
  }
  const Bytes last = Continuation(3, kEndHeaders, 10);
  // Committed behind this very packet.
  connection_.ServerSends({.seq = at, .ack = 77, .payload = last}, UNPIN_FORWARD_SPLICED);
  EXPECT_EQ(connection_.S2cFlow().splice.state, UNPIN_SPLICE_COMMITTED);
  EXPECT_EQ(connection_.S2cFlow().splice.boundary - connection_.server_first(), at + last.size());
}

TEST_F(Following, AnOpenPushPromiseIsNoBoundary) {
  using namespace http2;
  connection_.StartHttp2();
  ServerSays(Connection::kHttp2Start, PushPromise(1, 2, 0));
  EXPECT_EQ(connection_.Arm().state, UNPIN_SPLICE_ARMED);
}

TEST_F(Following, FramesOfAMegabyteAreFollowed) {
  using namespace http2;
  connection_.StartHttp2();
  Bytes header = Frame(kData, 0, 1, {});
  header[0] = 0x10;  // 2^20 bytes: a single frame of a gRPC C++ server
  uint32_t at = Connection::kHttp2Start;
  ServerSays(at, header);
  at += 9 + (1 << 20);
  EXPECT_EQ(ServerNext(), at);
  ServerSays(at - 100, Concat(Filler(100), Ping()));
  EXPECT_EQ(ServerNext(), at + 17);
  EXPECT_EQ(Server().epoch, 0u);
}

// ---- what is not cleartext HTTP/2 is forwarded, named, and never touched ----

TEST_F(Following, SettingsMustComeFirst) {
  using namespace http2;
  ClientSays(0, Concat(Preface(), Settings(), Headers(1, kEndHeaders | kEndStream)));
  ServerSays(0, Concat(Headers(1), Data(1, 30, kEndStream)));
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_OPAQUE);
}

TEST_F(Following, TheServerHasNotSpokenYet) {
  ClientSays(0, Concat(http2::Preface(), http2::Settings()));
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_UNDECIDED);
}

TEST_F(Following, NothingBeforeAResponseHasCompleted) {
  using namespace http2;
  ClientSays(0, Concat(Preface(), Settings(), Headers(1, kEndHeaders | kEndStream)));
  ServerSays(0, Concat(Settings(), Headers(1), Data(1, 30)));
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_NO_RESPONSE);
}

TEST_F(Following, Http1IsLeftAlone) {
  ClientSays(0, Bytes{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P'});
  ServerSays(0, Bytes{'H', 'T', 'T', 'P', '/', '1', '.', '1', ' ', '2', '0', '0'});
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_HTTP1);
}

// RFC 7540 section 3.2: begun as HTTP/1.1, goes on as HTTP/2. Deprecated (RFC 9113 section 3.1); not followed.
TEST_F(Following, AnUpgradeToH2cStaysHttp1) {
  using namespace http2;
  const std::string ask = "GET / HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
  const std::string answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n";
  ClientSays(0, Bytes(ask.begin(), ask.end()));
  ServerSays(0, Concat(Bytes(answer.begin(), answer.end()), Settings(), Headers(1),
                       Data(1, 20, kEndStream)));
  ClientSays(ask.size(), Concat(Preface(), Settings()));
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_HTTP1);
}

TEST_F(Following, TlsIsLeftAlone) {
  ClientSays(0, Bytes{0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3});
  ServerSays(0, Bytes{0x16, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3});
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_TLS);
}

TEST_F(Following, NonsenseStopsTheFollowerNotTheConnection) {
  using namespace http2;
  connection_.StartHttp2();
  const uint32_t at = Connection::kHttp2Start;
  const Bytes stray = Continuation(3);
  ServerSays(at, stray);
  EXPECT_EQ(Refusal(), UNPIN_REFUSAL_OPAQUE);
  ServerSays(at + stray.size(), Filler(500));
}

}  // namespace
}  // namespace unpin::testkit
