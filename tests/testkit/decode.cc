// SPDX-License-Identifier: Apache-2.0
#include "tests/testkit/decode.h"

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace unpin::testkit {
namespace {

using View = std::span<const uint8_t>;

uint32_t Read(View bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value * 256 + bytes[at + i];
  return value;
}

std::string Hex(View bytes) {
  std::string out;
  for (uint8_t byte : bytes) absl::StrAppendFormat(&out, "%02x", byte);
  return out;
}

std::string MacText(View bytes) {
  std::string out;
  for (size_t i = 0; i < 6; ++i) absl::StrAppendFormat(&out, i ? ":%02x" : "%02x", bytes[i]);
  return out;
}

std::string AddressText(View bytes) {
  return absl::StrCat(bytes[0], ".", bytes[1], ".", bytes[2], ".", bytes[3]);
}

// The one's complement sum modulo 2^16 - 1, by 64-bit arithmetic; 0 where the data sums up to "right".
uint16_t Residue(uint64_t sum, View bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? bytes[i] * 256u : bytes[i];
  return sum % 0xffff;
}

std::string ChecksumText(uint16_t written, uint16_t residue) {
  return absl::StrFormat("checksum %04x %s", written, residue == 0 ? "ok" : "WRONG");
}

std::string FlagsText(uint8_t flags) {
  const char* names[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};
  std::vector<std::string> set;
  for (int bit = 0; bit < 8; ++bit) {
    if (flags & (1 << bit)) set.push_back(names[bit]);
  }
  std::string out;
  for (const std::string& name : set) absl::StrAppend(&out, out.empty() ? "" : "|", name);
  return out.empty() ? "none" : out;
}

std::string SackText(View value) {
  std::string out = "sack";
  for (size_t at = 0; at + 8 <= value.size(); at += 8) {
    absl::StrAppend(&out, " [", Read(value, at, 4), ",", Read(value, at + 4, 4), ")");
  }
  return out;
}

std::string OptionsText(View options) {
  std::string out;
  for (size_t at = 0; at < options.size();) {
    const uint8_t kind = options[at];
    if (kind <= 1) {
      absl::StrAppend(&out, kind == 0 ? " end" : " nop");
      ++at;
      continue;
    }
    const size_t length = at + 1 < options.size() ? options[at + 1] : 0;
    if (length < 2 || at + length > options.size()) return absl::StrCat(out, " MALFORMED");
    const View value = options.subspan(at + 2, length - 2);
    if (kind == 5) {
      absl::StrAppend(&out, " ", SackText(value));
    } else if (kind == 8 && length == 10) {
      absl::StrAppend(&out, " timestamp ", Read(value, 0, 4), "/", Read(value, 4, 4));
    } else {
      absl::StrAppend(&out, " option-", kind, ":", Hex(value));
    }
    at += length;
  }
  return out.empty() ? " none" : out;
}

void DecodeTcp(View ip, View segment, std::vector<std::string>& lines) {
  const size_t header = segment.size() < 20 ? 0 : segment[12] / 16 * 4;
  if (header < 20 || header > segment.size()) {
    lines.push_back(absl::StrCat("not TCP: ", Hex(segment)));
    return;
  }
  const uint64_t pseudo = Residue(6 + segment.size(), ip.subspan(12, 8));
  lines.push_back(absl::StrCat("tcp ", Read(segment, 0, 2), " > ", Read(segment, 2, 2)));
  lines.push_back(absl::StrCat("tcp seq ", Read(segment, 4, 4), " ack ", Read(segment, 8, 4),
                               " flags ", FlagsText(segment[13]), " window ", Read(segment, 14, 2),
                               " urgent ", Read(segment, 18, 2)));
  lines.push_back(
      absl::StrCat("tcp ", ChecksumText(Read(segment, 16, 2), Residue(pseudo, segment))));
  lines.push_back(absl::StrCat("tcp options", OptionsText(segment.subspan(20, header - 20))));
  const View payload = segment.subspan(header);
  lines.push_back(absl::StrCat("payload ", payload.size(), " bytes ", Hex(payload)));
}

void DecodeIpv4(View rest, std::vector<std::string>& lines) {
  const size_t header = rest.size() < 20 ? 0 : rest[0] % 16 * 4;
  const size_t total = rest.size() < 20 ? 0 : Read(rest, 2, 2);
  if (header < 20 || rest[0] / 16 != 4 || total < header || total > rest.size()) {
    lines.push_back(absl::StrCat("not a whole IPv4 packet: ", Hex(rest)));
    return;
  }
  const View ip = rest.first(header);
  lines.push_back(
      absl::StrCat("ip ", AddressText(ip.subspan(12)), " > ", AddressText(ip.subspan(16))));
  lines.push_back(absl::StrCat("ip ttl ", ip[8], " protocol ", ip[9], " length ", total, " id ",
                               Read(ip, 4, 2), " fragment ", Read(ip, 6, 2), " tos ", ip[1]));
  lines.push_back(absl::StrCat("ip ", ChecksumText(Read(ip, 10, 2), Residue(0, ip))));
  if (header > 20) lines.push_back(absl::StrCat("ip options ", Hex(ip.subspan(20))));
  const View inside = rest.subspan(header, total - header);
  if (ip[9] == 6 && (Read(ip, 6, 2) & 0x3fff) == 0) {
    DecodeTcp(ip, inside, lines);
  } else {
    lines.push_back(absl::StrCat("payload ", Hex(inside)));
  }
  if (total < rest.size()) lines.push_back(absl::StrCat("padding ", Hex(rest.subspan(total))));
}

std::vector<std::string> DecodeLines(View frame) {
  std::vector<std::string> lines;
  if (frame.size() < 14) return {absl::StrCat("not Ethernet: ", Hex(frame))};
  lines.push_back(absl::StrCat("eth ", MacText(frame.subspan(6)), " > ", MacText(frame), " type ",
                               Hex(frame.subspan(12, 2))));
  if (Read(frame, 12, 2) == 0x0800) {
    DecodeIpv4(frame.subspan(14), lines);
  } else {
    lines.push_back(absl::StrCat("payload ", Hex(frame.subspan(14))));
  }
  return lines;
}

}  // namespace

std::string Decode(const Bytes& frame) {
  std::string out;
  for (const std::string& line : DecodeLines(frame)) absl::StrAppend(&out, "  ", line, "\n");
  return out;
}

std::string DecodedDiff(const Bytes& expected, const Bytes& actual) {
  const std::vector<std::string> want = DecodeLines(expected);
  const std::vector<std::string> got = DecodeLines(actual);
  std::string out;
  for (size_t i = 0; i < std::max(want.size(), got.size()); ++i) {
    const std::string wanted = i < want.size() ? want[i] : "(nothing)";
    const std::string found = i < got.size() ? got[i] : "(nothing)";
    if (wanted == found) {
      absl::StrAppend(&out, "    ", wanted, "\n");
    } else {
      absl::StrAppend(&out, "  - ", wanted, "\n  + ", found, "\n");
    }
  }
  absl::StrAppend(&out, "  length ", expected.size(), " expected, ", actual.size(),
                  " found; bytes differ at");
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (expected[i] != actual[i]) absl::StrAppend(&out, " ", i);
  }
  return absl::StrCat(out, "\n");
}

bool FrameIsMatcher::MatchAndExplain(const Bytes& actual, std::ostream* out) const {
  if (actual == expected_) return true;
  if (out != nullptr) *out << "decoded (- expected, + found):\n" << DecodedDiff(expected_, actual);
  return false;
}

void FrameIsMatcher::DescribeTo(std::ostream* out) const {
  *out << "is the frame\n" << Decode(expected_);
}
void FrameIsMatcher::DescribeNegationTo(std::ostream* out) const {
  *out << "is not the frame\n" << Decode(expected_);
}

}  // namespace unpin::testkit
