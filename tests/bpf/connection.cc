// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/decode.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {

uint32_t Connection::client_ifindex() const { return test_.network_.client.ifindex; }
uint32_t Connection::server_ifindex() const {
  return test_.network_.backend[ends_.backend].ifindex;
}

TcpFields Connection::Fields(const Segment& segment, uint32_t seq_base, uint32_t ack_base) const {
  Bytes options = segment.options;
  if (segment.timestamp) {
    options =
        Concat(options, Nop(2), Timestamp(segment.timestamp->first, segment.timestamp->second));
  }
  if (!segment.sack.empty()) {
    options = Concat(options, Nop(2), Bytes{5, static_cast<uint8_t>(2 + 8 * segment.sack.size())});
    for (const auto& [left, right] : segment.sack) {
      const Bytes block = Sack({{left + ack_base, right + ack_base}});
      options = Concat(options, Slice(block, 2, block.size()));
    }
  }
  return {.seq = segment.seq + seq_base,
          .ack = segment.flags & kAck ? segment.ack + ack_base : 0,
          .flags = segment.flags,
          .window = segment.window,
          .options = options};
}

Bytes Connection::FromClient(const Segment& segment) const {
  return Eth(test_.network_.client.gateway, test_.network_.client.peer) /
         Ipv4(ends_.client, ends_.vip, {.ttl = segment.ttl}) /
         Tcp(ends_.client_port, kVipPort, Fields(segment, client_first(), server_first())) /
         Payload(segment.payload);
}

Bytes Connection::ToServer(const Segment& segment) const {
  const Link& link = test_.network_.backend[ends_.backend];
  return Eth(link.peer, link.gateway) /
         Ipv4(source(), kBackendAddress[ends_.backend],
              {.ttl = static_cast<uint8_t>(segment.ttl - 1)}) /
         Tcp(source_port_, kBackendPort[ends_.backend],
             Fields(segment, client_first(), server_first())) /
         Payload(segment.payload);
}

Bytes Connection::FromServer(const Segment& segment) const {
  const Link& link = test_.network_.backend[ends_.backend];
  return Eth(link.gateway, link.peer) /
         Ipv4(kBackendAddress[ends_.backend], source(), {.ttl = segment.ttl}) /
         Tcp(kBackendPort[ends_.backend], source_port_,
             Fields(segment, server_first(), client_first())) /
         Payload(segment.payload);
}

Bytes Connection::ToClient(const Segment& segment) const {
  return Eth(test_.network_.client.peer, test_.network_.client.gateway) /
         Ipv4(ends_.vip, ends_.client, {.ttl = static_cast<uint8_t>(segment.ttl - 1)}) /
         Tcp(kVipPort, ends_.client_port, Fields(segment, server_first(), client_first())) /
         Payload(segment.payload);
}

void Connection::SendSyn(uint32_t verdict, const Segment& syn, Where where) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "SYN");
  const Outcome outcome = test_.Run(FromClient(syn), client_ifindex());
  ASSERT_EQ(outcome.counted, std::vector<uint32_t>{verdict})
      << "expected " << test_.plane_->NameOf("unpin_verdict", verdict) << " alone";
  ASSERT_EQ(outcome.action, XDP_REDIRECT);
  ASSERT_GE(outcome.frame.size(), 54u);
  source_port_ = outcome.frame[34] << 8 | outcome.frame[35];
  if (ends_.snat) {
    EXPECT_GE(source_port_, test_.controls_.snat_port_min);
    EXPECT_LE(source_port_, test_.controls_.snat_port_max);
  } else {
    EXPECT_EQ(source_port_, ends_.client_port);
  }
  EXPECT_THAT(outcome.frame, FrameIs(ToServer(syn)));
}

void Connection::SendSynAck(Where where) {
  ServerSends({.seq = kSyn0, .ack = 0, .flags = kSyn | kAck}, UNPIN_FORWARD_SYN_ACK, where);
}

void Connection::Open(Where where) {
  SendSyn(UNPIN_FORWARD_SYN, {.seq = kSyn0, .flags = kSyn}, where);
  SendSynAck(where);
  ClientSends({}, UNPIN_FORWARD_OPENED, where);
}

void Connection::ClientSends(const Segment& segment, uint32_t verdict, Where where) {
  ClientSends(segment, verdict, segment, where);
}
void Connection::ClientSends(const Segment& segment, uint32_t verdict, const Segment& arrives,
                             Where where) {
  test_.ExpectRun(FromClient(segment), client_ifindex(), verdict, XDP_REDIRECT, ToServer(arrives),
                  where);
}
void Connection::ServerSends(const Segment& segment, uint32_t verdict, Where where) {
  ServerSends(segment, verdict, segment, where);
}
void Connection::ServerSends(const Segment& segment, uint32_t verdict, const Segment& arrives,
                             Where where) {
  test_.ExpectRun(FromServer(segment), server_ifindex(), verdict, XDP_REDIRECT, ToClient(arrives),
                  where);
}
void Connection::ClientIsDropped(const Segment& segment, uint32_t verdict, Where where) {
  test_.ExpectRun(FromClient(segment), client_ifindex(), verdict, XDP_DROP, {}, where);
}
void Connection::ServerIsDropped(const Segment& segment, uint32_t verdict, Where where) {
  test_.ExpectRun(FromServer(segment), server_ifindex(), verdict, XDP_DROP, {}, where);
}

void Connection::StartHttp2(Where where) {
  using namespace http2;
  const Bytes request =
      Concat(Preface(), Settings(), Headers(1, kEndHeaders | kEndStream), SettingsAck());
  const Bytes response = Concat(Settings(), SettingsAck(), Headers(1), Data(1, 100, kEndStream));
  ASSERT_EQ(request.size(), kClientStart);
  ASSERT_EQ(response.size(), kHttp2Start);
  ClientSends({.flags = kAck | kPsh, .payload = request}, UNPIN_FORWARD_C2S, where);
  ServerSends({.ack = kClientStart, .flags = kAck | kPsh, .payload = response}, UNPIN_FORWARD_S2C,
              where);
  ClientSends({.seq = kClientStart, .ack = kHttp2Start}, UNPIN_FORWARD_C2S, where);
}

unpin_arm_args Connection::Arm(bool allow_trim, uint64_t min_age_ns) {
  unpin_arm_args args = {};
  args.s2c = s2c();
  args.allow_trim = allow_trim;
  args.min_age_ns = min_age_ns;
  const absl::StatusOr<unpin_arm_args> done = test_.plane_->ArmGoaway(args);
  EXPECT_TRUE(done.ok()) << done.status();
  return done.value_or(args);
}

void Connection::Splice(Where where) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "splice");
  const unpin_arm_args args = Arm();
  EXPECT_EQ(test_.plane_->NameOf("unpin_refusal", args.refusal),
            test_.plane_->NameOf("unpin_refusal", UNPIN_REFUSAL_NONE));
  EXPECT_EQ(args.state, UNPIN_SPLICE_COMMITTED);
  EXPECT_EQ(args.boundary - server_first(), kHttp2Start);
}

unpin_flow_key Connection::c2s() const {
  return FlowKey(ends_.client, ends_.client_port, ends_.vip, kVipPort);
}
unpin_flow_key Connection::s2c() const {
  return FlowKey(kBackendAddress[ends_.backend], kBackendPort[ends_.backend], source(),
                 source_port_);
}

unpin_flow Connection::C2sFlow() const {
  const absl::StatusOr<unpin_flow> flow = test_.plane_->Flow(c2s());
  EXPECT_TRUE(flow.ok()) << flow.status();
  return flow.value_or(unpin_flow{});
}
unpin_flow Connection::S2cFlow() const {
  const absl::StatusOr<unpin_flow> flow = test_.plane_->Flow(s2c());
  EXPECT_TRUE(flow.ok()) << flow.status();
  return flow.value_or(unpin_flow{});
}

}  // namespace unpin::testkit
