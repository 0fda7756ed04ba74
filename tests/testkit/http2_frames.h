// SPDX-License-Identifier: Apache-2.0
// HTTP/2 frames as bytes, RFC 9113. Header blocks are opaque to the data plane and filled with a pattern.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/testkit/packet.h"

namespace unpin::testkit::http2 {

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
enum Flag : uint8_t { kEndStream = 0x1, kAckFlag = 0x1, kEndHeaders = 0x4, kPadded = 0x8 };

inline Bytes Word(uint32_t value) {
  return {static_cast<uint8_t>(value >> 24), static_cast<uint8_t>(value >> 16),
          static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)};
}

// Section 4.1.
inline Bytes Frame(uint8_t type, uint8_t flags, uint32_t stream, const Bytes& payload) {
  const Bytes length = Word(static_cast<uint32_t>(payload.size()));
  return Concat(Bytes{length[1], length[2], length[3], type, flags}, Word(stream), payload);
}

inline Bytes Filler(size_t size, uint8_t first = 0x61) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(first + i % 23);
  return out;
}

inline Bytes Preface() {
  const absl::string_view text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  return Bytes(text.begin(), text.end());
}
inline Bytes Settings() { return Frame(kSettings, 0, 0, {0, 3, 0, 0, 0, 100}); }
inline Bytes SettingsAck() { return Frame(kSettings, kAckFlag, 0, {}); }
inline Bytes Headers(uint32_t stream, uint8_t flags = kEndHeaders, size_t block = 20) {
  return Frame(kHeaders, flags, stream, Filler(block, 0x80));
}
inline Bytes PushPromise(uint32_t stream, uint32_t promised, uint8_t flags = kEndHeaders) {
  return Frame(kPushPromise, flags, stream, Concat(Word(promised), Filler(10, 0x80)));
}
inline Bytes Continuation(uint32_t stream, uint8_t flags = kEndHeaders, size_t block = 10) {
  return Frame(kContinuation, flags, stream, Filler(block, 0x90));
}
inline Bytes Data(uint32_t stream, size_t size, uint8_t flags = 0) {
  return Frame(kData, flags, stream, Filler(size));
}
inline Bytes RstStream(uint32_t stream, uint32_t code = 8) {
  return Frame(kRstStream, 0, stream, Word(code));
}
inline Bytes Ping(uint8_t flags = 0) { return Frame(kPing, flags, 0, Filler(8)); }
inline Bytes WindowUpdate(uint32_t stream, uint32_t increment) {
  return Frame(kWindowUpdate, 0, stream, Word(increment));
}
inline Bytes Goaway(uint32_t last_stream = 0x7fffffff, uint32_t code = 0) {
  return Frame(kGoaway, 0, 0, Concat(Word(last_stream), Word(code)));
}

}  // namespace unpin::testkit::http2
