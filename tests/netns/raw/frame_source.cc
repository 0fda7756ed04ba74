// SPDX-License-Identifier: Apache-2.0
#include "tests/netns/raw/frame_source.h"

#include <algorithm>

#include "tests/testkit/http2_frames.h"

namespace unpin::raw {
namespace {

using namespace testkit::http2;  // frame types and flags

constexpr uint8_t kSeedHigh = 0xf1, kSeedLow = 0xf2;  // settings 0xf1f1, 0xf2f2

uint32_t WordAt(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

uint64_t StreamSeed(Side side, uint64_t seed) { return seed * 2 + (side == Side::kServer ? 1 : 0); }

}  // namespace

Bytes MarkerFrame(Marker marker, uint64_t position) {
  return Frame(marker, 0, 0,
               testkit::Concat(Word(static_cast<uint32_t>(position >> 32)),
                               Word(static_cast<uint32_t>(position))));
}

uint64_t SeedOf(const uint8_t (&opening)[kClientOpening]) {
  return uint64_t{WordAt(opening + 35)} << 32 | WordAt(opening + 41);
}

FrameSource::FrameSource(Side side, uint64_t seed)
    : side_(side), seed_(seed), random_(Random(StreamSeed(side, seed)).Next()) {}

Bytes FrameSource::Next() {
  if (!begun_) return Opening();
  if (continuations_ > 0) return Continuation();
  if (open_.empty()) return OpenStream();
  switch (random_.Between(0, 15)) {
    case 0:
    case 1:
      return open_.size() < 8 ? OpenStream() : Trailers();
    case 2:
      return Trailers();
    case 3:
      return side_ == Side::kServer ? PushPromise() : OpenStream();
    case 4:
      return Reset();
    case 5:
    case 6:
    case 7:
      return Control();
    default:
      return Data();
  }
}

Bytes FrameSource::Opening() {
  begun_ = true;
  if (side_ == Side::kServer) return Frame(kSettings, 0, 0, Noise(6 * random_.Between(0, 6)));
  const Bytes seed =
      testkit::Concat(Bytes{kSeedHigh, kSeedHigh}, Word(static_cast<uint32_t>(seed_ >> 32)),
                      Bytes{kSeedLow, kSeedLow}, Word(static_cast<uint32_t>(seed_)));
  return testkit::Concat(Preface(), Frame(kSettings, 0, 0, seed));
}

// HEADERS or PUSH_PROMISE; in half of the cases CONTINUATIONs follow.
Bytes FrameSource::Block(uint8_t type, uint8_t flags, uint32_t stream) {
  continuations_ = random_.OneIn(2) ? random_.Between(1, 4) : 0;
  block_stream_ = stream;
  if (continuations_ == 0) flags |= kEndHeaders;
  Bytes block = Noise(random_.Between(4, random_.OneIn(8) ? 5000 : 200));
  if (random_.OneIn(4)) {
    flags |= kPadded;
    block[0] = static_cast<uint8_t>(
        random_.Between(0, static_cast<uint32_t>(std::min<size_t>(block.size() - 1, 255))));
  }
  return Frame(type, flags, stream, block);
}

Bytes FrameSource::OpenStream() {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  open_.push_back(stream);
  return Block(kHeaders, 0, stream);
}

Bytes FrameSource::Trailers() {
  const uint32_t stream = AnyOpen();
  End(stream);
  return Block(kHeaders, kEndStream, stream);
}

Bytes FrameSource::PushPromise() {
  next_promise_ += 2;
  return Block(kPushPromise, 0, AnyOpen());
}

Bytes FrameSource::Continuation() {
  --continuations_;
  return Frame(kContinuation, continuations_ == 0 ? kEndHeaders : 0, block_stream_,
               Noise(random_.Between(0, 900)));
}

Bytes FrameSource::Reset() {
  const uint32_t stream = AnyOpen();
  End(stream);
  return Frame(kRstStream, 0, stream, Word(random_.Between(0, 13)));
}

Bytes FrameSource::Control() {
  switch (random_.Between(0, 5)) {
    case 0:
      return Frame(kPing, random_.OneIn(2) ? kAckFlag : 0, 0, Noise(8));
    case 1:
      return Frame(kWindowUpdate, 0, random_.OneIn(2) ? 0 : AnyOpen(),
                   Word(random_.Between(1, 0x7fffffff)));
    case 2:
      return random_.OneIn(2) ? Frame(kSettings, kAckFlag, 0, {})
                              : Frame(kSettings, 0, 0, Noise(6 * random_.Between(0, 4)));
    case 3:
      return Frame(kPriority, 0, AnyOpen(), Noise(5));
    default:  // RFC 9113 section 4.1: unknown types are to be ignored, whatever their flags
      return Frame(static_cast<uint8_t>(random_.Between(0x10, 0xe0)),
                   static_cast<uint8_t>(random_.Next()), random_.OneIn(2) ? 0 : AnyOpen(),
                   Noise(random_.Between(0, 300)));
  }
}

Bytes FrameSource::Data() {
  const uint32_t stream = AnyOpen();
  uint8_t flags = 0;
  Bytes payload = Noise(DataSize());
  if (!payload.empty() && random_.OneIn(8)) {
    flags |= kPadded;
    payload[0] = static_cast<uint8_t>(
        random_.Between(0, static_cast<uint32_t>(std::min<size_t>(payload.size() - 1, 255))));
  }
  if (random_.OneIn(4)) {
    flags |= kEndStream;
    End(stream);
  }
  if (payload.size() > 100 && random_.OneIn(4)) {
    // HTTP/2 carried inside a payload: nobody may take it for frames.
    const Bytes inner = testkit::Concat(Goaway(), Ping(), Headers(1), RstStream(1));
    std::copy(inner.begin(), inner.end(), payload.end() - static_cast<long>(inner.size()));
  }
  return Frame(kData, flags, stream, payload);
}

// 0 to 1 MB, small ones most often.
uint32_t FrameSource::DataSize() {
  const uint32_t kind = random_.Between(0, 199);
  if (kind < 120) return random_.Between(0, 300);
  if (kind < 190) return random_.Between(300, 16384);
  if (kind < 199 || side_ == Side::kClient) return random_.Between(16384, 100000);
  return random_.Between(100000, 1 << 20);
}

uint32_t FrameSource::AnyOpen() {
  if (open_.empty()) return next_stream_ > 1 ? next_stream_ - 2 : 1;
  return open_[random_.Between(0, static_cast<uint32_t>(open_.size() - 1))];
}

void FrameSource::End(uint32_t stream) {
  std::erase(open_, stream);
  has_ended_a_stream_ = true;
}

Bytes FrameSource::Noise(size_t size) {
  Bytes bytes(size);
  random_.Fill(bytes.data(), size);
  return bytes;
}

}  // namespace unpin::raw
