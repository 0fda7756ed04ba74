// SPDX-License-Identifier: Apache-2.0
#include "bench/cost/rows.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "tests/testkit/http2_frames.h"

namespace unpin::bench {
namespace {

using testkit::Bytes;
using testkit::Concat;
namespace http2 = testkit::http2;

constexpr uint32_t kSeq = 3000000000;
constexpr uint32_t kAck = 1000000;
constexpr uint16_t kClientPort = 40000;
constexpr size_t kSegment = 1448;  // an Ethernet frame's worth, with timestamps

testkit::TcpFields Fields(uint8_t flags, uint32_t ack) {
  return {.seq = kSeq,
          .ack = ack,
          .flags = flags,
          .options = Concat(testkit::Nop(2), testkit::Timestamp(7, 8))};
}

class Maker {
 public:
  explicit Maker(const testkit::PrivateNetwork& network) : network_(network) {}

  Bytes FromClient(const Bytes& payload, uint8_t flags = testkit::kAck,
                   const char* to = kVip) const {
    return testkit::Eth(network_.client.gateway, network_.client.peer) /
           testkit::Ipv4("11.0.0.0", to) /
           testkit::Tcp(kClientPort, kVipPort, Fields(flags, kAck)) / testkit::Payload(payload);
  }
  Bytes FromServer(const Bytes& payload, uint8_t flags = testkit::kAck, uint32_t ack = kAck) const {
    const testkit::Link& link = network_.backend[0];
    return testkit::Eth(link.gateway, link.peer) / testkit::Ipv4(kBackend, "11.0.0.0") /
           testkit::Tcp(kBackendPort, kClientPort, Fields(flags, ack)) / testkit::Payload(payload);
  }

  // An established flow in the middle of HTTP/2, whose next frame header is `ahead` bytes on.
  unpin_flow Flow(uint8_t direction, uint8_t protocol, uint32_t ahead, uint32_t splice) const {
    const testkit::Link& to = direction == UNPIN_C2S ? network_.backend[0] : network_.client;
    unpin_flow flow = {};
    flow.direction = direction;
    flow.rewrite = {.source = htonl(testkit::Quad("10.1.255.1")),
                    .destination = htonl(testkit::Quad(kBackend)),
                    .source_port = htons(2000),
                    .destination_port = htons(kBackendPort),
                    .ip_delta = 0x1234,
                    .tcp_delta = 0x4321,
                    .destination_mac = {},
                    .source_mac = {},
                    .egress_ifindex = to.ifindex,
                    .route_generation = 1};
    std::ranges::copy(to.peer, flow.rewrite.destination_mac);
    std::ranges::copy(to.gateway, flow.rewrite.source_mac);
    flow.follower = {.next_header = kSeq + ahead,
                     .highest_seen = kSeq,
                     .generation = 1,
                     .flags = UNPIN_FOLLOWER_SETTINGS_SEEN,
                     .protocol = protocol,
                     .direction = direction};
    flow.tcp.ack = kAck;
    flow.splice = {.boundary = (direction == UNPIN_S2C ? kSeq : kAck) - 1000, .state = splice};
    return flow;
  }

  Row C2s(std::string name, const Bytes& payload, std::vector<Bar> bars) const {
    return {.name = std::move(name),
            .frames = {FromClient(payload)},
            .ifindex = network_.client.ifindex,
            .seq = kSeq,
            .seq_step = payload.empty() ? 0u : 1u,
            .verdicts = {UNPIN_FORWARD_C2S},
            .flow = C2sFlow(UNPIN_PROTOCOL_H2, UNPIN_SPLICE_NONE),
            .bars = std::move(bars)};
  }
  // `ahead` and `step` keep the follower in step with the packets: the next header of a flow is at `ahead` in each.
  Row S2c(std::string name, const Bytes& payload, uint32_t ahead, uint32_t step,
          std::vector<Bar> bars) const {
    return {.name = std::move(name),
            .frames = {FromServer(payload)},
            .ifindex = network_.backend[0].ifindex,
            .varies_source = false,
            .seq = kSeq,
            .seq_step = step,
            .verdicts = {UNPIN_FORWARD_S2C},
            .flow = S2cFlow(UNPIN_PROTOCOL_H2, ahead, UNPIN_SPLICE_NONE),
            .bars = std::move(bars)};
  }

  std::function<FlowEntry(uint32_t)> C2sFlow(uint8_t protocol, uint32_t splice) const {
    return [flow = Flow(UNPIN_C2S, protocol, kFarAhead, splice)](uint32_t index) {
      return FlowEntry{.key = {htonl(kFirstClient + index), htonl(testkit::Quad(kVip)),
                               htons(kClientPort), htons(kVipPort)},
                       .flow = flow};
    };
  }
  std::function<FlowEntry(uint32_t)> S2cFlow(uint8_t protocol, uint32_t ahead,
                                             uint32_t splice) const {
    return [flow = Flow(UNPIN_S2C, protocol, ahead, splice)](uint32_t index) {
      return FlowEntry{.key = {htonl(testkit::Quad(kBackend)), htonl(kFirstClient + index),
                               htons(kBackendPort), htons(kClientPort)},
                       .flow = flow};
    };
  }

  Row NoFlow(std::string name, std::vector<Bytes> frames, std::vector<uint32_t> verdicts,
             std::vector<Bar> bars) const {
    return {.name = std::move(name),
            .frames = std::move(frames),
            .ifindex = network_.client.ifindex,
            .seq = kSeq,
            .verdicts = std::move(verdicts),
            .bars = std::move(bars)};
  }

  static constexpr uint32_t kFarAhead = 1 << 30;

 private:
  testkit::PrivateNetwork network_;
};

// A reply of gRPC: HEADERS, DATA, trailers; `count` frames, the last of which fills up to `size` bytes.
Bytes Frames(size_t count, size_t size) {
  const size_t each = size / count - 9;
  Bytes out;
  for (size_t i = 0; i < count; ++i) {
    const size_t block = i + 1 == count ? size - out.size() - 9 : each;
    if (i % 3 == 1) {
      out = Concat(out, http2::Data(1, block));
    } else {
      const uint8_t ends = i % 3 == 2 ? http2::kEndStream : 0;
      out = Concat(out, http2::Headers(1, http2::kEndHeaders | ends, block));
    }
  }
  return out;
}

// One header at byte 700; its frame ends where the next packet's begins.
Bytes OneHeader() {
  const Bytes frame = http2::Data(1, kSegment - 9);
  return Concat(http2::Filler(700), testkit::Slice(frame, 0, kSegment - 700));
}

Row WithFlow(Row row, std::string name, std::function<FlowEntry(uint32_t)> flow,
             std::vector<Bar> bars) {
  row.name = std::move(name);
  row.flow = std::move(flow);
  row.bars = std::move(bars);
  return row;
}

Row Spliced(Row row) {
  row.verdicts = {UNPIN_FORWARD_SPLICED};
  return row;
}

Bytes Udp(Bytes frame) {
  frame[23] = 17;
  return frame;
}

std::vector<Row> Established(const Maker& make) {
  const Bytes filler = http2::Filler(kSegment);
  const Row c2s = make.C2s("c2s pure ACK", {}, {{1, 4.5}, {65536, 17}});
  const Row s2c = make.S2c("s2c 1448 B inside a frame", filler, Maker::kFarAhead, 1, {{1, 6}});
  return {
      c2s,
      make.C2s("c2s 1448 B inside a frame", filler, {}),
      s2c,
      make.S2c("s2c 1448 B, one header", OneHeader(), 700, kSegment, {}),
      make.S2c("s2c 148 B, 3 frames", Frames(3, 148), 0, 148, {{1, 12}}),
      make.S2c("s2c 1448 B, 40 frames", Frames(40, kSegment), 0, kSegment, {{1, 60}}),
      Spliced(WithFlow(c2s, "c2s pure ACK, spliced",
                       make.C2sFlow(UNPIN_PROTOCOL_H2, UNPIN_SPLICE_ACKNOWLEDGED),
                       {{1, 0.5, c2s.name}})),
      Spliced(WithFlow(s2c, "s2c 1448 B inside a frame, spliced",
                       make.S2cFlow(UNPIN_PROTOCOL_H2, Maker::kFarAhead, UNPIN_SPLICE_ACKNOWLEDGED),
                       {{1, 0.5, s2c.name}})),
      WithFlow(make.C2s("", filler, {}), "c2s 1448 B, not HTTP/2",
               make.C2sFlow(UNPIN_PROTOCOL_TLS, UNPIN_SPLICE_NONE), {{1, 4.5}}),
      WithFlow(s2c, "s2c 1448 B, not HTTP/2",
               make.S2cFlow(UNPIN_PROTOCOL_TLS, 0, UNPIN_SPLICE_NONE), {{1, 4.5}}),
  };
}

std::vector<Row> Others(const Maker& make) {
  const Bytes syn = make.FromClient({}, testkit::kSyn);
  const Bytes syn_ack = make.FromServer({}, testkit::kSyn | testkit::kAck, kSeq + 1);
  Bytes ack = make.FromClient({});
  const uint32_t acked = htonl(kSeq + 1);
  std::copy_n(reinterpret_cast<const uint8_t*>(&acked), 4, ack.begin() + 42);
  Row handshake =
      make.NoFlow("new connection, a packet of three", {syn, syn_ack, ack},
                  {UNPIN_FORWARD_SYN, UNPIN_FORWARD_SYN_ACK, UNPIN_FORWARD_OPENED}, {{1, 27}});
  handshake.target = Target::kHandshake;
  handshake.has_endless_flows = true;
  Row flood = make.NoFlow("SYN flood", {syn}, {UNPIN_FORWARD_SYN}, {});
  flood.has_endless_flows = true;
  return {
      handshake,
      flood,
      make.NoFlow("not ours: TCP, no service", {make.FromClient({}, testkit::kAck, "10.9.0.77")},
                  {UNPIN_PASS_NO_SERVICE}, {{1, 2.5}}),
      make.NoFlow("not ours: UDP", {Udp(make.FromClient({}))}, {UNPIN_PASS_NOT_TCP}, {{1, 2.5}}),
      make.NoFlow("mid-stream of no connection: reset", {make.FromClient({})},
                  {UNPIN_REPLY_RESET_UNKNOWN}, {}),
  };
}

}  // namespace

std::vector<Row> Rows(const testkit::PrivateNetwork& network) {
  const Maker make(network);
  Row floor = make.C2s("floor: swap MACs, transmit", {}, {});
  floor.target = Target::kFloor;
  floor.verdicts = {};
  Row lookup = floor;
  lookup.name = "floor: and find the flow, count";
  lookup.target = Target::kLookup;
  std::vector<Row> rows = {floor, lookup};
  for (std::vector<Row> more : {Established(make), Others(make)}) {
    for (Row& row : more) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace unpin::bench
