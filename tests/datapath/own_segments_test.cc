// SPDX-License-Identifier: Apache-2.0
// The frames against bytes written by hand; the checksums are summed in the comments.
#include "userspace/datapath/own_segments.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace unpin {
namespace {

using Bytes = std::vector<uint8_t>;

unpin_flow CommittedFlow() {
  const uint8_t client_mac[6] = {0x02, 0, 0, 0, 0, 0x0c};
  const uint8_t gateway_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
  unpin_flow flow = {};
  flow.rewrite.source = htonl(0x0a090001);       // 10.9.0.1
  flow.rewrite.destination = htonl(0x0a000002);  // 10.0.0.2
  flow.rewrite.source_port = htons(50051);
  flow.rewrite.destination_port = htons(40000);
  std::memcpy(flow.rewrite.destination_mac, client_mac, sizeof(client_mac));
  std::memcpy(flow.rewrite.source_mac, gateway_mac, sizeof(gateway_mac));
  flow.splice = {.boundary = 0x11223344, .state = UNPIN_SPLICE_COMMITTED};
  flow.tcp.ack = 0x55667788;
  flow.tcp.window = 0x01f5;
  return flow;
}

// IP: 4500+0039+0000+4000+4006+0a09+0001+0a00+0002 = d94b, complement 26b4.
// TCP: pseudo header 0a09+0001+0a00+0002+0006+0025; header c383+9c40+1122+3344+5566+7788+5018+01f5;
// payload 0000+0807+0000+0000+007f+ffff+ff00+0000+0000: in all 4dee0, folded dee4, complement 211b.
TEST(GoawayFrame, IsTheServersNextSegment) {
  const Bytes expected = {0x02, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x02, 0x00, 0x00,
                          0x00, 0x00, 0x01, 0x08, 0x00,  // Ethernet
                          0x45, 0x00, 0x00, 0x39, 0x00, 0x00, 0x40, 0x00, 0x40,
                          0x06, 0x26, 0xb4,                             // IP
                          10,   9,    0,    1,    10,   0,    0,    2,  // addresses
                          0xc3, 0x83, 0x9c, 0x40, 0x11, 0x22, 0x33, 0x44, 0x55,
                          0x66, 0x77, 0x88,                                // TCP
                          0x50, 0x18, 0x01, 0xf5, 0x21, 0x1b, 0x00, 0x00,  //
                          0,    0,    8,    7,    0,    0,    0,    0,    0,
                          0x7f, 0xff, 0xff, 0xff, 0,    0,    0,    0};
  EXPECT_EQ(BuildGoawayFrame(CommittedFlow()), expected);
}

// IP: the length is 12 more: d957, complement 26a8. TCP: the length is 12 more, the data offset 3 words
// (8018 for 5018), and 0101+080a+aabb+ccdd+0102+0304 are added: in all 69395, folded 939b, complement 6c64.
TEST(GoawayFrame, CarriesTheNewestTimestamps) {
  unpin_flow flow = CommittedFlow();
  flow.tcp.has_timestamp = 1;
  flow.tcp.tsval = 0xaabbccdd;
  flow.tcp.tsecr = 0x01020304;
  const Bytes expected = {0x02, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x02, 0x00, 0x00,
                          0x00, 0x00, 0x01, 0x08, 0x00,  // Ethernet
                          0x45, 0x00, 0x00, 0x45, 0x00, 0x00, 0x40, 0x00, 0x40,
                          0x06, 0x26, 0xa8,                             // IP
                          10,   9,    0,    1,    10,   0,    0,    2,  // addresses
                          0xc3, 0x83, 0x9c, 0x40, 0x11, 0x22, 0x33, 0x44, 0x55,
                          0x66, 0x77, 0x88,                                // TCP
                          0x80, 0x18, 0x01, 0xf5, 0x6c, 0x64, 0x00, 0x00,  //
                          0x01, 0x01, 0x08, 0x0a, 0xaa, 0xbb, 0xcc, 0xdd, 0x01,
                          0x02, 0x03, 0x04,  // options
                          0,    0,    8,    7,    0,    0,    0,    0,    0,
                          0x7f, 0xff, 0xff, 0xff, 0,    0,    0,    0};
  EXPECT_EQ(BuildGoawayFrame(flow), expected);
}

// The sequence number and the TCP checksum differ; IP: length 40, d93a, complement 26c5.
Bytes Reset(std::initializer_list<uint8_t> sequence, uint8_t checksum_high, uint8_t checksum_low) {
  Bytes frame = {0x02, 0, 0, 0,    0,  0x0c, 0x02, 0, 0,    0,    0,    0x01, 0x08,
                 0x00,                                                          // Ethernet
                 0x45, 0, 0, 0x28, 0,  0,    0x40, 0, 0x40, 0x06, 0x26, 0xc5,   // IP
                 10,   9, 0, 1,    10, 0,    0,    2, 0xc3, 0x83, 0x9c, 0x40};  // addresses, ports
  for (const uint8_t byte : sequence) frame.push_back(byte);
  for (const uint8_t byte :
       Bytes{0x55, 0x66, 0x77, 0x88, 0x50, 0x14, 0, 0, checksum_high, checksum_low, 0, 0})
    frame.push_back(byte);
  return frame;
}

// TCP: 0a09+0001+0a00+0002+0006+0014+c383+9c40+1122+3340+5566+7788+5014+0000 = 2d54d, folded d54f, complement 2ab0.
TEST(ResetFrame, StandsAtTheNextNumberOfTheClient) {
  unpin_flow flow = CommittedFlow();
  flow.tcp.has_timestamp = 1;  // an RST carries none here: its number alone decides
  flow.follower.highest_seen = 0x11223340;
  EXPECT_EQ(BuildResetFrame(flow), Reset({0x11, 0x22, 0x33, 0x40}, 0x2a, 0xb0))
      << "before the boundary";
  flow.splice.state = UNPIN_SPLICE_NONE;
  EXPECT_EQ(BuildResetFrame(flow), Reset({0x11, 0x22, 0x33, 0x40}, 0x2a, 0xb0)) << "never spliced";
}

// 11223350 + 17 = 11223361: 21 more, 2d56e, folded d570, complement 2a8f.
TEST(ResetFrame, CountsTheGoawayBeyondTheBoundary) {
  unpin_flow flow = CommittedFlow();
  flow.follower.highest_seen = 0x11223350;
  for (const uint32_t state :
       {UNPIN_SPLICE_COMMITTED, UNPIN_SPLICE_ACKNOWLEDGED, UNPIN_SPLICE_PAST}) {
    flow.splice.state = state;
    EXPECT_EQ(BuildResetFrame(flow), Reset({0x11, 0x22, 0x33, 0x61}, 0x2a, 0x8f)) << state;
  }
}

}  // namespace
}  // namespace unpin
