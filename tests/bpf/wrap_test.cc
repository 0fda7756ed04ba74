// SPDX-License-Identifier: Apache-2.0
// Sequence numbers wrap at 2^32 (RFC 9293 section 3.4): a splice anywhere around it, and one that is left 20 GB behind.
#include <gtest/gtest.h>

#include "tests/bpf/spliced.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

using http2::Filler;

class Wrap : public Spliced {
 protected:
  // The number of the boundary is `boundary`, that of the client's next byte `asked`.
  void BeginAt(uint32_t boundary, uint32_t asked) {
    Begin({.client_port = port_++,
           .client_isn = asked - kAsked - 1,
           .server_isn = boundary - kBoundary - 1});
  }
  void EveryPlaceAroundTheBoundary() {
    ServerSends(kBoundary - 20, Filler(20));
    ServerSends(kBoundary, http2::Data(1, 191));
    ServerSends(kBoundary + 200, http2::Ping());
    const Bytes across = Filler(60);
    connection_->ServerSends(
        {.seq = kBoundary - 40, .ack = kAsked, .payload = across}, UNPIN_FORWARD_TRIMMED,
        {.seq = kBoundary - 40, .ack = kAsked, .payload = Slice(across, 0, 40)});
    for (uint32_t ack = kBoundary - 20; ack < kBoundary + kDelta; ++ack)
      ClientAcks(ack, std::min(ack, kBoundary));
    SackBefore();
    for (uint32_t ack = kBoundary + kDelta; ack < kBoundary + kDelta + 20; ++ack)
      ClientAcks(ack, ack - kDelta);
    EXPECT_EQ(State(), UNPIN_SPLICE_ACKNOWLEDGED);
    connection_->ServerSends({.seq = kBoundary - 40, .ack = kAsked, .payload = across},
                             UNPIN_FORWARD_SPLICED,
                             {.seq = kBoundary - 40 + kDelta, .ack = kAsked, .payload = across});
    connection_->ClientSends(
        {.seq = kAsked, .ack = kBoundary + 30, .sack = {{kBoundary + 50, kBoundary + 60}}},
        UNPIN_FORWARD_SPLICED,
        {.seq = kAsked, .ack = kBoundary + 13, .sack = {{kBoundary + 33, kBoundary + 43}}});
  }
  void SackBefore() {
    connection_->ClientSends(
        {.seq = kAsked, .ack = kBoundary - 30, .sack = {{kBoundary - 20, kBoundary + 19}}},
        UNPIN_FORWARD_SPLICED,
        {.seq = kAsked, .ack = kBoundary - 30, .sack = {{kBoundary - 20, kBoundary + 2}}});
  }

  uint16_t port_ = 44000;
};

TEST_F(Wrap, TheServersNumbersWrapAnywhereAroundTheGoaway) {
  for (const int32_t boundary : {-60, -41, -20, -18, -17, -16, -1, 0, 1, 16, 17, 39, 40, 161}) {
    SCOPED_TRACE(boundary);
    BeginAt(static_cast<uint32_t>(boundary), 5000);
    EveryPlaceAroundTheBoundary();
    if (HasFailure()) return;
  }
}

// Half way round is where a comparison of numbers turns.
TEST_F(Wrap, TheServersNumbersAreHalfWayRound) {
  for (const uint32_t boundary : {0x7fffffe0u, 0x7fffffffu, 0x80000000u, 0x80000010u}) {
    SCOPED_TRACE(boundary);
    BeginAt(boundary, 5000);
    EveryPlaceAroundTheBoundary();
    if (HasFailure()) return;
  }
}

TEST_F(Wrap, TheClientsNumbersWrapWithin) {
  for (const int32_t asked : {-1, 0, 1, 30}) {
    SCOPED_TRACE(asked);
    BeginAt(70000, static_cast<uint32_t>(asked));
    const Bytes request = http2::Headers(3, http2::kEndHeaders | http2::kEndStream);
    connection_->ClientSends({.seq = kAsked, .ack = kBoundary + kDelta, .payload = request},
                             UNPIN_FORWARD_SPLICED,
                             {.seq = kAsked, .ack = kBoundary, .payload = request});
    EXPECT_EQ(connection_->C2sFlow().follower.last_stream, 3u);
    EXPECT_EQ(connection_->C2sFlow().follower.next_header - connection_->client_first(),
              kAsked + request.size());
  }
}

// 17 stays between the two ends for good, although the boundary's number comes round again and again.
TEST_F(Wrap, TwentyGigabytesOnEveryNumberIsStillShifted) {
  Acknowledge();
  for (uint64_t position = kBoundary; position < 20ull << 30; position += 300u << 20) {
    const auto seq = static_cast<uint32_t>(position);
    SCOPED_TRACE(position);
    connection_->ServerSends({.seq = seq, .ack = kAsked}, UNPIN_FORWARD_SPLICED,
                             {.seq = seq + kDelta, .ack = kAsked});
    connection_->ClientSends({.seq = kAsked, .ack = seq + kDelta}, UNPIN_FORWARD_SPLICED,
                             {.seq = kAsked, .ack = seq});
    if (HasFailure()) return;
  }
  EXPECT_EQ(State(), UNPIN_SPLICE_PAST);
}

}  // namespace
}  // namespace unpin::testkit
