// SPDX-License-Identifier: Apache-2.0
// However a stream is cut into segments, the data plane's walk and the agent's plain loop end in the same state.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "bpf/http2.h"
#include "tests/host/data_plane_host.h"

namespace {

unpin_follower Start(uint8_t direction, uint32_t sequence) {
  unpin_follower f{};
  http2_start(&f, direction, sequence, 0);
  return f;
}

bool SameState(const unpin_follower& a, const unpin_follower& b) {
  return a.protocol == b.protocol && a.flags == b.flags && a.streams_ended == b.streams_ended &&
         a.last_stream == b.last_stream && a.next_header == b.next_header &&
         a.partial_length == b.partial_length &&
         ((a.flags & UNPIN_FOLLOWER_PREFACE) || std::memcmp(a.partial, b.partial, a.partial_length) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 8 || size > 65536) return 0;
  uint32_t sequence;
  std::memcpy(&sequence, data, sizeof(sequence));
  const uint8_t direction = data[4] & 1;
  const uint8_t* cuts = data + 5;  // three segment lengths, used in turn
  const uint8_t* stream = data + 8;
  const uint32_t length = static_cast<uint32_t>(size - 8);

  unpin_follower whole = Start(direction, sequence);
  http2_feed_bytes(&whole, sequence, stream, length);
  unpin_follower walked = Start(direction, sequence);
  unpin_follower fed = walked;
  for (uint32_t at = 0, turn = 0; at < length; ++turn) {
    const uint32_t chunk = 1 + cuts[turn % 3];
    const uint32_t take = chunk < length - at ? chunk : length - at;
    host_follow_packet(&walked, sequence + at, stream + at, take);
    http2_feed_bytes(&fed, sequence + at, stream + at, take);
    at += take;
  }
  // A TLS client is told from others by its second byte too, if that came along.
  if (whole.protocol != fed.protocol && stream[0] == 0x16) return 0;
  if (!SameState(whole, fed) || !SameState(whole, walked)) abort();
  return 0;
}
