// SPDX-License-Identifier: Apache-2.0
// The follower's judgements, frame by frame (RFC 9113).
#include "bpf/http2.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;

Bytes Frame(uint8_t type, uint8_t flags, uint32_t stream, uint32_t length) {
  Bytes bytes = {uint8_t(length >> 16), uint8_t(length >> 8),  uint8_t(length),      type,           flags,
                 uint8_t(stream >> 24), uint8_t(stream >> 16), uint8_t(stream >> 8), uint8_t(stream)};
  bytes.resize(9 + length, 0xee);
  return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes Text(const std::string& text) { return Bytes(text.begin(), text.end()); }

const Bytes kSettings = Frame(4, 0, 0, 12);
const Bytes kPreface = Text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

unpin_follower Follow(uint8_t direction, const Bytes& stream, uint32_t start = 1000) {
  unpin_follower f{};
  http2_start(&f, direction, start, 7);
  http2_feed_bytes(&f, start, stream.data(), static_cast<uint32_t>(stream.size()));
  return f;
}

TEST(Http2Client, IsKnownByItsPrefaceAndSettings) {
  EXPECT_EQ(Follow(UNPIN_C2S, kPreface + kSettings).protocol, UNPIN_PROTOCOL_H2);
  EXPECT_EQ(Follow(UNPIN_C2S, kPreface).protocol, UNPIN_PROTOCOL_UNKNOWN);
  EXPECT_EQ(Follow(UNPIN_C2S, kPreface + Frame(6, 0, 0, 8)).protocol, UNPIN_PROTOCOL_OPAQUE);
}

TEST(Http2Client, OtherProtocolsAreNamed) {
  EXPECT_EQ(Follow(UNPIN_C2S, {0x16, 0x03, 0x01}).protocol, UNPIN_PROTOCOL_TLS);
  EXPECT_EQ(Follow(UNPIN_C2S, {0x16}).protocol, UNPIN_PROTOCOL_TLS);
  EXPECT_EQ(Follow(UNPIN_C2S, {0x16, 0x44}).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_C2S, Text("GET / HTTP/1.1\r\n")).protocol, UNPIN_PROTOCOL_HTTP1);
  EXPECT_EQ(Follow(UNPIN_C2S, Text("POST / HTTP/1.1\r\n")).protocol, UNPIN_PROTOCOL_HTTP1);
  EXPECT_EQ(Follow(UNPIN_C2S, Text("PRI * HTTP/1.1")).protocol, UNPIN_PROTOCOL_HTTP1);
  EXPECT_EQ(Follow(UNPIN_C2S, {0x00, 0x01}).protocol, UNPIN_PROTOCOL_OPAQUE);
}

TEST(Http2Server, MustBeginWithSettings) {
  EXPECT_EQ(Follow(UNPIN_S2C, kSettings).protocol, UNPIN_PROTOCOL_H2);
  EXPECT_EQ(Follow(UNPIN_S2C, Frame(4, 1, 0, 0)).protocol, UNPIN_PROTOCOL_OPAQUE);  // an acknowledgement
  EXPECT_EQ(Follow(UNPIN_S2C, Frame(4, 0, 0, 7)).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_S2C, Frame(0, 0, 1, 7)).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_S2C, Text("HTTP/1.1 200 OK")).protocol, UNPIN_PROTOCOL_HTTP1);
  EXPECT_EQ(Follow(UNPIN_S2C, Text("220 smtp ready")).protocol, UNPIN_PROTOCOL_OPAQUE);
}

TEST(Http2Boundary, IsOnlyBetweenFramesAndOutsideHeaderBlocks) {
  const auto at_boundary = [](const Bytes& stream) {
    const unpin_follower f = Follow(UNPIN_S2C, stream);
    return http2_at_boundary(&f) && f.next_header == 1000 + stream.size();
  };
  EXPECT_FALSE(at_boundary({}));  // not before the server's SETTINGS
  EXPECT_TRUE(at_boundary(kSettings));
  EXPECT_FALSE(at_boundary(kSettings + Frame(1, 0, 1, 10)));  // HEADERS without END_HEADERS
  EXPECT_FALSE(at_boundary(kSettings + Frame(1, 0, 1, 10) + Frame(9, 0, 1, 10)));
  EXPECT_TRUE(at_boundary(kSettings + Frame(1, 0, 1, 10) + Frame(9, 4, 1, 10)));
  EXPECT_TRUE(at_boundary(kSettings + Frame(1, 4, 1, 10)));
  EXPECT_FALSE(at_boundary(kSettings + Bytes{0, 0}));  // inside a header
  EXPECT_FALSE(at_boundary(kSettings + Frame(7, 0, 0, 8)));  // the server has said goodbye
}

TEST(Http2Boundary, WrapsWithTheSequenceNumbers) {
  const Bytes stream = kSettings + Frame(1, 4, 1, 40) + Frame(0, 1, 1, 100);
  const uint32_t start = 0xffffffe0;
  const unpin_follower f = Follow(UNPIN_S2C, stream, start);
  EXPECT_EQ(f.next_header, start + static_cast<uint32_t>(stream.size()));
  EXPECT_TRUE(http2_at_boundary(&f));
}

TEST(Http2Streams, EndOnceEach) {
  const unpin_follower f = Follow(UNPIN_S2C, kSettings + Frame(1, 4, 1, 9) + Frame(0, 0, 1, 30) + Frame(1, 5, 1, 4) +
                                                 Frame(3, 0, 1, 4) +  // RST_STREAM(NO_ERROR) right after the trailers
                                                 Frame(3, 0, 3, 4) + Frame(0, 1, 5, 2));
  EXPECT_EQ(f.streams_ended, 3u);
}

TEST(Http2Streams, BeginAreCountedByTheHighestId) {
  const unpin_follower f =
      Follow(UNPIN_C2S, kPreface + kSettings + Frame(1, 5, 1, 9) + Frame(1, 4, 7, 9) + Frame(1, 5, 7, 3));
  EXPECT_EQ(f.last_stream, 7u);
}

TEST(Http2Malformed, StopsTheFollower) {
  EXPECT_EQ(Follow(UNPIN_S2C, kSettings + Frame(9, 4, 1, 3)).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_S2C, kSettings + Frame(1, 0, 1, 3) + Frame(0, 0, 1, 3)).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_S2C, kSettings + Frame(0, 0, 0, 3)).protocol, UNPIN_PROTOCOL_OPAQUE);
  EXPECT_EQ(Follow(UNPIN_S2C, kSettings + Frame(0xfe, 0, 0, 3)).protocol, UNPIN_PROTOCOL_H2);  // extensions are fine
}

}  // namespace
