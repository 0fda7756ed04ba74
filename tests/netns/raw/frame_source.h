// SPDX-License-Identifier: Apache-2.0
// An endless stream of syntactically valid HTTP/2 frames, wholly determined by a seed: what one end sends, the other
// makes again to compare.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/netns/raw/random.h"
#include "tests/testkit/packet.h"

namespace unpin::raw {

using testkit::Bytes;

enum class Side { kClient, kServer };

// Frames that are no part of the stream: each may stand at any clean boundary, and says where it stands.
enum Marker : uint8_t {
  kGo = 0xf1,      // c2s: the client has its GOAWAY
  kFinish = 0xf2,  // nothing but FIN follows
};
// `position`: of its first byte among the bytes its sender sends.
Bytes MarkerFrame(Marker marker, uint64_t position);

constexpr size_t kSpecialFrame = 17;  // a marker's length, and a GOAWAY's
constexpr size_t kClientOpening = 24 + 9 + 12;

// The client's opening carries the seed as the values of two unknown settings.
uint64_t SeedOf(const uint8_t (&opening)[kClientOpening]);

class FrameSource {
 public:
  FrameSource(Side side, uint64_t seed);

  // The next frame; the first one is SETTINGS, with the preface before it on the client's side.
  Bytes Next();

  // No header block is open, and SETTINGS have been sent.
  bool at_clean_boundary() const { return begun_ && continuations_ == 0; }
  bool has_ended_a_stream() const { return has_ended_a_stream_; }

 private:
  Bytes Opening();
  Bytes Data();
  Bytes OpenStream();
  Bytes Trailers();
  Bytes PushPromise();
  Bytes Continuation();
  Bytes Reset();
  Bytes Control();
  Bytes Block(uint8_t type, uint8_t flags, uint32_t stream);
  uint32_t DataSize();
  uint32_t AnyOpen();
  void End(uint32_t stream);
  Bytes Noise(size_t size);

  Side side_;
  uint64_t seed_;
  Random random_;
  bool begun_ = false;
  bool has_ended_a_stream_ = false;
  uint32_t next_stream_ = 1;
  uint32_t next_promise_ = 2;
  std::vector<uint32_t> open_;
  uint32_t continuations_ = 0;  // still to come in the open header block
  uint32_t block_stream_ = 0;
};

}  // namespace unpin::raw
