// SPDX-License-Identifier: Apache-2.0
#include "tests/testkit/packet.h"

#include <gtest/gtest.h>

#include "tests/testkit/decode.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Packet, ChecksumOfAPublishedIpv4Header) {
  // Wikipedia, "Internet checksum": 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7
  const Bytes header =
      Ipv4("192.168.0.1", "192.168.0.199", {.protocol = 17, .id = 0, .total_length = 0x73});
  EXPECT_EQ(header, (Bytes{0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                           0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7}));
}

TEST(Packet, DecodesWhatItSays) {
  const Bytes frame = Eth() / Ipv4("192.0.2.1", "198.51.100.1", {.ttl = 9}) /
                      Tcp(4000, 80,
                          {.seq = 7,
                           .ack = 8,
                           .flags = kAck | kPsh,
                           .options = Concat(Nop(2), Timestamp(1, 2), Sack({{3, 4}}))}) /
                      Payload("odd") / Padding({0, 0});
  const std::string text = Decode(frame);
  for (const char* part :
       {"192.0.2.1 > 198.51.100.1", "ttl 9", "4000 > 80", "seq 7 ack 8", "PSH|ACK",
        "nop nop timestamp 1/2 sack [3,4)", "payload 3 bytes 6f6464", "padding 0000"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("WRONG")));
}

TEST(Packet, DecoderSeesWrongChecksums) {
  const auto segment = [](uint16_t ip, uint16_t tcp) {
    return Decode(Eth() / Ipv4("192.0.2.1", "198.51.100.1", {.checksum = ip}) /
                  Tcp(1, 2, {.checksum = tcp}));
  };
  EXPECT_THAT(segment(0x1111, 0x2222), HasSubstr("ip checksum 1111 WRONG"));
  EXPECT_THAT(segment(0x1111, 0x2222), HasSubstr("tcp checksum 2222 WRONG"));
}

TEST(Packet, DiffNamesTheFieldThatDiffers) {
  const Packet base = Eth() / Ipv4("192.0.2.1", "198.51.100.1");
  const std::string diff =
      DecodedDiff(base / Tcp(1, 2, {.window = 5}), base / Tcp(1, 2, {.window = 6}));
  EXPECT_THAT(diff, HasSubstr("- tcp seq 0 ack 0 flags ACK window 5"));
  EXPECT_THAT(diff, HasSubstr("+ tcp seq 0 ack 0 flags ACK window 6"));
}

TEST(Http2Frames, GoawayIsTheSeventeenBytesOfTheRfc) {
  EXPECT_EQ(http2::Goaway(),
            (Bytes{0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace unpin::testkit
