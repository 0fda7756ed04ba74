// SPDX-License-Identifier: Apache-2.0
#include "tests/testkit/packet.h"

#include <arpa/inet.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace unpin::testkit {
namespace {

void Put8(Bytes& out, uint8_t value) { out.push_back(value); }
void Put16(Bytes& out, uint16_t value) {
  Put8(out, value >> 8);
  Put8(out, value & 0xff);
}
void Put32(Bytes& out, uint32_t value) {
  Put16(out, value >> 16);
  Put16(out, value & 0xffff);
}
void Set16(Bytes& out, size_t at, uint16_t value) {
  out[at] = value >> 8;
  out[at + 1] = value & 0xff;
}

// RFC 1071.
uint16_t InternetChecksum(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    sum += bytes[i] << 8;
    if (i + 1 < bytes.size()) sum += bytes[i + 1];
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

Bytes PseudoHeader(const Ipv4Layer& ip, size_t tcp_length) {
  Bytes out;
  Put32(out, ip.source);
  Put32(out, ip.destination);
  Put16(out, ip.fields.protocol);
  Put16(out, static_cast<uint16_t>(tcp_length));
  return out;
}

Bytes Wrap(const EthLayer& eth, const Bytes& inner) {
  Bytes out = Concat(eth.destination, eth.source);
  Put16(out, eth.type);
  return Concat(out, inner);
}

Bytes Wrap(const Ipv4Layer& ip, const Bytes& inner) {
  const Ipv4Fields& fields = ip.fields;
  const size_t header = 20 + fields.options.size();
  Bytes out;
  Put8(out, 0x40 | (header / 4));
  Put8(out, fields.tos);
  Put16(out, fields.total_length.value_or(header + inner.size()));
  Put16(out, fields.id);
  Put16(out, fields.fragment);
  Put8(out, fields.ttl);
  Put8(out, fields.protocol);
  Put16(out, 0);
  Put32(out, ip.source);
  Put32(out, ip.destination);
  out = Concat(out, fields.options);
  Set16(out, 10, fields.checksum.value_or(InternetChecksum(out)));
  return Concat(out, inner);
}

Bytes Wrap(const TcpLayer& tcp, const Ipv4Layer& ip, const Bytes& inner) {
  const TcpFields& fields = tcp.fields;
  Bytes options = fields.options;
  options.resize((options.size() + 3) / 4 * 4);
  Bytes out;
  Put16(out, tcp.source_port);
  Put16(out, tcp.destination_port);
  Put32(out, fields.seq);
  Put32(out, fields.ack);
  Put8(out, fields.header_words.value_or(5 + options.size() / 4) << 4);
  Put8(out, fields.flags);
  Put16(out, fields.window);
  Put16(out, 0);
  Put16(out, fields.urgent);
  out = Concat(out, options, inner);
  Set16(out, 16,
        fields.checksum.value_or(InternetChecksum(Concat(PseudoHeader(ip, out.size()), out))));
  return out;
}

}  // namespace

Packet operator/(Packet outer, const Packet& inner) {
  outer.layers_.insert(outer.layers_.end(), inner.layers_.begin(), inner.layers_.end());
  return outer;
}

Bytes Packet::Build() const {
  Ipv4Layer ip;
  for (const Layer& layer : layers_) {
    if (const auto* found = std::get_if<Ipv4Layer>(&layer)) ip = *found;
  }
  Bytes out;
  Bytes padding;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    if (const auto* eth = std::get_if<EthLayer>(&*layer)) out = Wrap(*eth, out);
    if (const auto* ipv4 = std::get_if<Ipv4Layer>(&*layer)) out = Wrap(*ipv4, out);
    if (const auto* tcp = std::get_if<TcpLayer>(&*layer)) out = Wrap(*tcp, ip, out);
    if (const auto* payload = std::get_if<PayloadLayer>(&*layer)) out = Concat(payload->bytes, out);
    if (const auto* extra = std::get_if<PaddingLayer>(&*layer)) padding = extra->bytes;
  }
  return Concat(out, padding);
}

Packet Eth(const Mac& destination, const Mac& source, uint16_t type) {
  return Packet(EthLayer{destination, source, type});
}

Packet Ipv4(absl::string_view source, absl::string_view destination, Ipv4Fields fields) {
  return Packet(Ipv4Layer{Quad(source), Quad(destination), std::move(fields)});
}

Packet Tcp(uint16_t source_port, uint16_t destination_port, TcpFields fields) {
  return Packet(TcpLayer{source_port, destination_port, std::move(fields)});
}

Packet Payload(Bytes bytes) { return Packet(PayloadLayer{std::move(bytes)}); }
Packet Payload(absl::string_view text) { return Payload(Bytes(text.begin(), text.end())); }
Packet Padding(Bytes bytes) { return Packet(PaddingLayer{std::move(bytes)}); }

Bytes Nop(size_t count) { return Bytes(count, 1); }
Bytes MaximumSegmentSize(uint16_t size) {
  Bytes out = {2, 4};
  Put16(out, size);
  return out;
}
Bytes SackPermitted() { return {4, 2}; }
Bytes Timestamp(uint32_t value, uint32_t echo) {
  Bytes out = {8, 10};
  Put32(out, value);
  Put32(out, echo);
  return out;
}
Bytes Sack(std::initializer_list<std::pair<uint32_t, uint32_t>> blocks) {
  Bytes out = {5, static_cast<uint8_t>(2 + 8 * blocks.size())};
  for (const auto& [left, right] : blocks) {
    Put32(out, left);
    Put32(out, right);
  }
  return out;
}
Bytes FastOpenCookie(std::initializer_list<uint8_t> cookie) {
  return Concat(Bytes{34, static_cast<uint8_t>(2 + cookie.size())}, cookie);
}

uint32_t Quad(absl::string_view text) {
  in_addr address = {};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) {
    std::fprintf(stderr, "test bug: \"%s\" is not an IPv4 address\n", std::string(text).c_str());
    std::abort();
  }
  return ntohl(address.s_addr);
}

}  // namespace unpin::testkit
