// SPDX-License-Identifier: Apache-2.0
// What is not ours passes untouched; what is ours and cannot be forwarded is dropped for a reason that is counted.
#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

constexpr uint16_t kMoreFragments = 0x2000;

using NotOurs = DataPlaneTest;

TEST_F(NotOurs, ArpPasses) {
  ExpectPass(Eth({}, {}, 0x0806) / Payload(Bytes(28, 7)), UNPIN_PASS_NOT_IPV4);
}

TEST_F(NotOurs, Ipv6Passes) {
  ExpectPass(Eth({}, {}, 0x86dd) / Payload(Bytes(60, 6)), UNPIN_PASS_NOT_IPV4);
}

TEST_F(NotOurs, VlanTaggedPasses) {
  ExpectPass(Eth({}, {}, 0x8100) / Payload(Bytes(60, 6)), UNPIN_PASS_NOT_IPV4);
}

TEST_F(NotOurs, UdpToTheServicePortPasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", kVip, {.protocol = 17}) /
                 Payload(Bytes{0x9c, 0x40, 0, 80, 0, 8, 0, 0}),
             UNPIN_PASS_NOT_TCP);
}

TEST_F(NotOurs, IcmpToTheVipPasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", kVip, {.protocol = 1}) /
                 Payload(Bytes{8, 0, 0xf7, 0xff, 0, 0, 0, 0}),
             UNPIN_PASS_NOT_TCP);
}

TEST_F(NotOurs, AnotherPortOfTheVipPasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", kVip) / Tcp(40000, 81, {.flags = kSyn}),
             UNPIN_PASS_NO_SERVICE);
}

TEST_F(NotOurs, AnotherAddressPasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", "10.9.0.2") / Tcp(40000, 80, {.flags = kSyn}),
             UNPIN_PASS_NO_SERVICE);
}

TEST_F(NotOurs, TrafficOfABackendWithOthersPasses) {
  ExpectPass(Eth() / Ipv4(kBackendAddress[0], kSnatAddress) /
                 Tcp(kBackendPort[0], 22, {.flags = kSyn | kAck}),
             UNPIN_PASS_NO_SERVICE);
}

TEST_F(NotOurs, LaterFragmentPasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", kVip, {.fragment = 185}) / Payload(Bytes(40)),
             UNPIN_PASS_FRAGMENT);
}

TEST_F(NotOurs, FirstFragmentElsewherePasses) {
  ExpectPass(Eth() / Ipv4("10.0.0.2", "10.9.0.2", {.fragment = kMoreFragments}) / Tcp(1, 80),
             UNPIN_PASS_NO_SERVICE);
}

TEST_F(NotOurs, FirstFragmentToAServiceIsDropped) {
  ExpectRun(Eth() / Ipv4("10.0.0.2", kVip, {.fragment = kMoreFragments}) /
                Tcp(40000, 80, {.flags = kSyn}),
            network_.client.ifindex, UNPIN_DROP_FRAGMENT, XDP_DROP, {});
}

// Half a segment must neither reach the backend nor be followed as if it were whole.
TEST_F(NotOurs, FirstFragmentOfAnEstablishedConnectionIsDropped) {
  Connection connection(*this);
  connection.Open();
  const Bytes frame =
      Eth(network_.client.gateway, network_.client.peer) /
      Ipv4("10.0.0.2", kVip, {.fragment = kMoreFragments}) /
      Tcp(40000, 80, {.seq = connection.client_first(), .ack = connection.server_first()}) /
      Payload(http2::Preface());
  ExpectRun(frame, network_.client.ifindex, UNPIN_DROP_FRAGMENT, XDP_DROP, {});
  EXPECT_EQ(connection.C2sFlow().follower.highest_seen, connection.client_first());
}

struct Malformed {
  const char* name;
  Bytes frame;
};

// Lengths that contradict each other: not provably ours, so the kernel may judge.
TEST_F(NotOurs, TruncatedFramesPass) {
  const Packet ip = Eth() / Ipv4("10.0.0.2", kVip);
  const Bytes whole = ip / Tcp(40000, 80, {.flags = kSyn}) / Payload("0123456789");
  Bytes wrong_version = whole;
  wrong_version[14] = 0x65;
  Bytes short_header = whole;
  short_header[14] = 0x44;
  const Malformed cases[] = {
      {"no IP header", Slice(whole, 0, 20)},
      {"cut in the TCP header", Slice(whole, 0, 40)},
      {"cut in the payload", Slice(whole, 0, whole.size() - 1)},
      {"IP header of four words", short_header},
      {"IP version 6 in an IPv4 frame", wrong_version},
      {"IP length below its header",
       Eth() / Ipv4("10.0.0.2", kVip, {.total_length = 19}) / Tcp(40000, 80)},
      {"IP length without room for TCP",
       Eth() / Ipv4("10.0.0.2", kVip, {.total_length = 30}) / Tcp(40000, 80)},
      {"TCP header of four words", ip / Tcp(40000, 80, {.header_words = 4})},
      {"TCP header longer than the datagram", ip / Tcp(40000, 80, {.header_words = 15})},
  };
  for (const Malformed& c : cases) {
    SCOPED_TRACE(c.name);
    ExpectPass(c.frame, UNPIN_PASS_TRUNCATED);
  }
}

using Shapes = DataPlaneTest;

TEST_F(Shapes, EthernetPaddingStaysAndIsNoPayload) {
  Connection connection(*this);
  connection.Open();
  const Bytes padding(6, 0xee);
  ExpectRun(Concat(connection.FromServer({.ack = 0}), padding), connection.server_ifindex(),
            UNPIN_FORWARD_S2C, XDP_REDIRECT, Concat(connection.ToClient({.ack = 0}), padding));
  EXPECT_EQ(connection.S2cFlow().bytes, 0u);
  EXPECT_EQ(connection.S2cFlow().follower.highest_seen, connection.server_first());
}

TEST_F(Shapes, MtuSizedAndJumboFrames) {
  Connection connection(*this);
  connection.Open();
  // A test run holds one page less headroom and tailroom; generic and frags modes are for the tests with devices.
  uint32_t seq = 0;
  for (const size_t size : {1460, 3000, 3400}) {
    SCOPED_TRACE(size);
    connection.ClientSends({.seq = seq, .payload = http2::Filler(size)}, UNPIN_FORWARD_C2S);
    seq += size;
  }
  EXPECT_EQ(connection.C2sFlow().bytes, 1460u + 3000u + 3400u);
}

TEST_F(Shapes, IpOptionsAreKept) {
  Connection connection(*this);
  connection.Open();
  const Bytes record_route = {7, 7, 4, 0, 0, 0, 0, 0};
  const TcpFields fields = {.seq = connection.client_first(), .ack = connection.server_first()};
  const Link& link = network_.backend[0];
  ExpectRun(Eth(network_.client.gateway, network_.client.peer) /
                Ipv4("10.0.0.2", kVip, {.options = record_route}) / Tcp(40000, 80, fields) /
                Payload("hello"),
            network_.client.ifindex, UNPIN_FORWARD_C2S, XDP_REDIRECT,
            Eth(link.peer, link.gateway) /
                Ipv4(kSnatAddress, kBackendAddress[0], {.ttl = 63, .options = record_route}) /
                Tcp(connection.source_port(), kBackendPort[0], fields) / Payload("hello"));
}

TEST_F(Shapes, TosUrgentEcnAndUnknownOptionsAreKept) {
  Connection connection(*this);
  connection.Open();
  const TcpFields fields = {.seq = connection.client_first(),
                            .ack = connection.server_first(),
                            .flags = kAck | kUrg | kEce | kCwr | kPsh,
                            .urgent = 3,
                            .options = Bytes{254, 4, 0xde, 0xad}};
  const Link& link = network_.backend[0];
  ExpectRun(Eth(network_.client.gateway, network_.client.peer) /
                Ipv4("10.0.0.2", kVip, {.tos = 0xb9, .id = 0}) / Tcp(40000, 80, fields) /
                Payload("hello"),
            network_.client.ifindex, UNPIN_FORWARD_C2S, XDP_REDIRECT,
            Eth(link.peer, link.gateway) /
                Ipv4(kSnatAddress, kBackendAddress[0], {.tos = 0xb9, .ttl = 63, .id = 0}) /
                Tcp(connection.source_port(), kBackendPort[0], fields) / Payload("hello"));
}

// An incremental update keeps a wrong checksum wrong: the receiver, not the balancer, finds damaged packets.
TEST_F(Shapes, DamagedPacketStaysDamaged) {
  Connection connection(*this);
  connection.Open();
  Bytes in = connection.FromClient({.payload = http2::Filler(50)});
  Bytes out = connection.ToServer({.payload = http2::Filler(50)});
  in.back() ^= 0x40;
  out.back() ^= 0x40;
  ExpectRun(in, connection.client_ifindex(), UNPIN_FORWARD_C2S, XDP_REDIRECT, out);
}

TEST_F(Shapes, TtlOneIsDropped) {
  Connection connection(*this);
  connection.Open();
  connection.ClientIsDropped({.ttl = 1}, UNPIN_DROP_TTL);
  connection.ServerIsDropped({.ttl = 1}, UNPIN_DROP_TTL);
  connection.ClientSends({.ttl = 2}, UNPIN_FORWARD_C2S);
}

// Checksums on the way over 0xffff and 0: RFC 1624 is about these.
TEST_F(Shapes, ChecksumsAreRightForEveryPayloadWord) {
  Connection connection(*this);
  connection.Open();
  for (uint32_t word = 0; word <= 0xffff; word += 251) {
    const Bytes payload = {static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)};
    connection.ClientSends({.seq = 0, .payload = payload}, UNPIN_FORWARD_C2S);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace unpin::testkit
