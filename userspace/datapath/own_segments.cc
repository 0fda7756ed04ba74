// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/own_segments.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace unpin {
namespace {

constexpr size_t kIpLength = 20;
constexpr size_t kTcpLength = 20;
constexpr size_t kTimestampLength = 12;  // NOP NOP TIMESTAMP, RFC 7323 appendix A
constexpr uint8_t kTtl = 64;
constexpr uint8_t kPushAck = 0x18;
constexpr uint8_t kResetAck = 0x14;

// RFC 9113 section 6.8: last stream id 2^31 - 1, so that no stream is refused; NO_ERROR.
constexpr std::array<uint8_t, UNPIN_GOAWAY_LENGTH> kGoaway = {0,    0,    8,    7,    0, 0, 0, 0, 0,
                                                              0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};

class FrameWriter {
 public:
  void Put8(uint8_t value) { bytes_.push_back(value); }
  void Put16(uint16_t value) {
    Put8(value >> 8);
    Put8(value & 0xff);
  }
  void Put32(uint32_t value) {
    Put16(value >> 16);
    Put16(value & 0xffff);
  }
  // For fields the flow holds as on the wire.
  template <typename T>
  void PutWire(const T& value) {
    const auto* first = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(value));
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

uint32_t AddWords(uint32_t sum, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
  return sum;
}

// RFC 1071.
uint16_t FoldChecksum(uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

void PutAt(std::vector<uint8_t>& bytes, size_t offset, uint16_t value) {
  bytes[offset] = value >> 8;
  bytes[offset + 1] = value & 0xff;
}

void PutIpHeader(FrameWriter& writer, const unpin_rewrite& rewrite, size_t tcp_size) {
  writer.Put8(0x45);
  writer.Put8(0);
  writer.Put16(static_cast<uint16_t>(kIpLength + tcp_size));
  writer.Put16(0);       // identification: atomic datagram, RFC 6864
  writer.Put16(0x4000);  // don't fragment
  writer.Put8(kTtl);
  writer.Put8(IPPROTO_TCP);
  writer.Put16(0);  // checksum
  writer.PutWire(rewrite.source);
  writer.PutWire(rewrite.destination);
}

// What differs between the two.
struct Segment {
  uint32_t sequence = 0;  // client space
  uint8_t flags = 0;
  bool with_timestamp = false;
  std::span<const uint8_t> payload;

  size_t header_size() const { return kTcpLength + (with_timestamp ? kTimestampLength : 0); }
};

void PutTcpHeader(FrameWriter& writer, const unpin_flow& s2c, const Segment& segment) {
  writer.PutWire(s2c.rewrite.source_port);
  writer.PutWire(s2c.rewrite.destination_port);
  writer.Put32(segment.sequence);
  writer.Put32(s2c.tcp.ack);
  writer.Put8(static_cast<uint8_t>(segment.header_size() / 4 << 4));
  writer.Put8(segment.flags);
  writer.Put16(segment.flags == kResetAck ? 0 : s2c.tcp.window);
  writer.Put16(0);  // checksum
  writer.Put16(0);  // urgent pointer
  if (!segment.with_timestamp) return;
  writer.Put32(0x0101080a);
  writer.Put32(s2c.tcp.tsval);
  writer.Put32(s2c.tcp.tsecr);
}

void FillChecksums(std::vector<uint8_t>& frame) {
  const std::span<const uint8_t> ip(frame.data() + ETH_HLEN, kIpLength);
  const std::span<const uint8_t> tcp(frame.data() + ETH_HLEN + kIpLength,
                                     frame.size() - ETH_HLEN - kIpLength);
  const uint32_t pseudo_header =
      AddWords(IPPROTO_TCP + static_cast<uint32_t>(tcp.size()), ip.subspan(12, 8));
  const uint16_t tcp_checksum = FoldChecksum(AddWords(pseudo_header, tcp));
  PutAt(frame, ETH_HLEN + 10, FoldChecksum(AddWords(0, ip)));
  PutAt(frame, ETH_HLEN + kIpLength + 16, tcp_checksum);
}

std::vector<uint8_t> BuildFrame(const unpin_flow& s2c, const Segment& segment) {
  FrameWriter writer;
  writer.PutWire(s2c.rewrite.destination_mac);
  writer.PutWire(s2c.rewrite.source_mac);
  writer.Put16(ETH_P_IP);
  PutIpHeader(writer, s2c.rewrite, segment.header_size() + segment.payload.size());
  PutTcpHeader(writer, s2c, segment);
  for (const uint8_t byte : segment.payload) writer.Put8(byte);
  FillChecksums(writer.bytes());
  return std::move(writer.bytes());
}

}  // namespace

std::vector<uint8_t> BuildGoawayFrame(const unpin_flow& s2c) {
  return BuildFrame(s2c, {.sequence = s2c.splice.boundary,
                          .flags = kPushAck,
                          .with_timestamp = s2c.tcp.has_timestamp != 0,
                          .payload = kGoaway});
}

std::vector<uint8_t> BuildResetFrame(const unpin_flow& s2c) {
  const uint32_t next = s2c.follower.highest_seen;
  const bool is_past = s2c.splice.state == UNPIN_SPLICE_PAST;
  const bool is_spliced = s2c.splice.state >= UNPIN_SPLICE_COMMITTED;
  const bool is_beyond = is_past || static_cast<int32_t>(next - s2c.splice.boundary) >= 0;
  return BuildFrame(s2c, {.sequence = next + (is_spliced && is_beyond ? UNPIN_GOAWAY_LENGTH : 0),
                          .flags = kResetAck,
                          .with_timestamp = false,
                          .payload = {}});
}

}  // namespace unpin
