// SPDX-License-Identifier: Apache-2.0
// A spliced connection, packet by packet: what its server repeats, what its client acknowledges.
#include <gtest/gtest.h>

#include "tests/bpf/scene.h"
#include "tests/testkit/http2_frames.h"

namespace unpin::testkit {
namespace {

constexpr uint32_t kBoundary = Connection::kHttp2Start;
constexpr uint32_t kDelta = 17;

// Idle at the boundary, then committed: the GOAWAY is on its way.
class Spliced : public DataPlaneTest {
 protected:
  void SetUp() override {
    DataPlaneTest::SetUp();
    connection_.Open();
    connection_.StartHttp2();
    connection_.Splice();
  }
  // The client has the GOAWAY.
  void Acknowledge() {
    connection_.ClientSends({.seq = 77, .ack = kBoundary + kDelta}, UNPIN_FORWARD_SPLICED,
                            {.seq = 77, .ack = kBoundary});
  }

  Connection connection_{*this};
};

TEST_F(Spliced, RepeatedBytesBeforeTheBoundaryStayWhereTheyAre) {
  const Segment again = {.seq = kBoundary - 9, .ack = 77, .payload = http2::Filler(9)};
  connection_.ServerSends(again, UNPIN_FORWARD_SPLICED);
  Acknowledge();
  connection_.ServerSends(again, UNPIN_FORWARD_SPLICED);
}

TEST_F(Spliced, FinAtTheBoundaryFollowsTheGoaway) {
  connection_.ServerSends({.seq = kBoundary, .ack = 77, .flags = kFin | kAck},
                          UNPIN_FORWARD_SPLICED,
                          {.seq = kBoundary + kDelta, .ack = 77, .flags = kFin | kAck});
}

// The FIN counts as the byte after the boundary: it must not end the client's stream before the GOAWAY.
TEST_F(Spliced, FinBehindRepeatedBytesIsCutOffUntilTheClientHasTheGoaway) {
  const Segment again = {
      .seq = kBoundary - 9, .ack = 77, .flags = kFin | kPsh | kAck, .payload = http2::Filler(9)};
  Segment cut = again;
  cut.flags = kPsh | kAck;
  connection_.ServerSends(again, UNPIN_FORWARD_TRIMMED, cut);

  Acknowledge();
  Segment shifted = again;
  shifted.seq += kDelta;
  connection_.ServerSends(again, UNPIN_FORWARD_SPLICED, shifted);
}

TEST_F(Spliced, MalformedSackIsLeftAsItIs) {
  for (const uint8_t length : {2, 9, 11, 12, 17, 19}) {
    SCOPED_TRACE(static_cast<int>(length));
    Bytes sack(length, 0xee);
    sack[0] = 5;
    sack[1] = length;
    connection_.ClientSends({.seq = 77, .ack = kBoundary, .options = sack}, UNPIN_FORWARD_SPLICED);
  }
}

}  // namespace
}  // namespace unpin::testkit
