// SPDX-License-Identifier: Apache-2.0
// Frames written as one says them:
//   Eth() / Ipv4("192.0.2.1", "198.51.100.1", {.ttl = 64}) / Tcp(4000, 80, {.seq = 7}) / Payload("x")
// Lengths and checksums are computed, and right, unless a field says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace unpin::testkit {

using Bytes = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;

// RFC 9293 section 3.1.
enum TcpFlag : uint8_t {
  kFin = 1 << 0,
  kSyn = 1 << 1,
  kRst = 1 << 2,
  kPsh = 1 << 3,
  kAck = 1 << 4,
  kUrg = 1 << 5,
  kEce = 1 << 6,
  kCwr = 1 << 7,
};

struct EthLayer {
  Mac destination = {};
  Mac source = {};
  uint16_t type = 0x0800;
};

struct Ipv4Fields {
  uint8_t tos = 0;
  uint8_t ttl = 64;
  uint8_t protocol = 6;
  uint16_t id = 0x2b67;
  uint16_t fragment = 0x4000;  // flags and offset as on the wire; DF by default
  Bytes options = {};          // a multiple of four bytes
  std::optional<uint16_t> total_length = {};
  std::optional<uint16_t> checksum = {};
};

struct Ipv4Layer {
  uint32_t source = 0;
  uint32_t destination = 0;
  Ipv4Fields fields = {};
};

struct TcpFields {
  uint32_t seq = 0;
  uint32_t ack = 0;
  uint8_t flags = kAck;
  uint16_t window = 502;
  uint16_t urgent = 0;
  Bytes options = {};  // padded with zeros (end of options) to a multiple of four
  std::optional<uint8_t> header_words = {};
  std::optional<uint16_t> checksum = {};
};

struct TcpLayer {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  TcpFields fields = {};
};

struct PayloadLayer {
  Bytes bytes;
};

// Ethernet padding: behind the IP datagram, counted by nobody.
struct PaddingLayer {
  Bytes bytes;
};

class Packet {
 public:
  using Layer = std::variant<EthLayer, Ipv4Layer, TcpLayer, PayloadLayer, PaddingLayer>;

  Packet(Layer layer) : layers_{std::move(layer)} {}
  Bytes Build() const;
  operator Bytes() const { return Build(); }
  friend Packet operator/(Packet outer, const Packet& inner);

 private:
  std::vector<Layer> layers_;  // outermost first
};

Packet Eth(const Mac& destination = {2, 0, 0, 0, 0, 1}, const Mac& source = {2, 0, 0, 0, 0, 2},
           uint16_t type = 0x0800);
// Addresses are dotted quads; aborts if one is not.
Packet Ipv4(absl::string_view source, absl::string_view destination, Ipv4Fields fields = {});
Packet Tcp(uint16_t source_port, uint16_t destination_port, TcpFields fields = {});
Packet Payload(Bytes bytes);
Packet Payload(absl::string_view text);
Packet Padding(Bytes bytes);

// TCP options, to be joined by Concat(). RFC 9293 section 3.2, RFC 7323, RFC 2018.
Bytes Nop(size_t count = 1);
Bytes MaximumSegmentSize(uint16_t size);
Bytes SackPermitted();
Bytes Timestamp(uint32_t value, uint32_t echo);
Bytes Sack(std::initializer_list<std::pair<uint32_t, uint32_t>> blocks);
Bytes FastOpenCookie(std::initializer_list<uint8_t> cookie);  // RFC 7413

// The address in host byte order; aborts if `text` is not a dotted quad.
uint32_t Quad(absl::string_view text);

template <typename... Parts>
Bytes Concat(const Parts&... parts) {
  Bytes all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}

// bytes[from, to)
inline Bytes Slice(const Bytes& bytes, size_t from, size_t to) {
  return Bytes(bytes.begin() + from, bytes.begin() + to);
}

}  // namespace unpin::testkit
