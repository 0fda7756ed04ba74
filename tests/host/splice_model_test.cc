// SPDX-License-Identifier: Apache-2.0
// The splice's arithmetic against a model that knows no arithmetic: the client's stream is spelled out byte by byte,
// each byte labelled with the server byte it is (or as part of the GOAWAY), and what a translation claims is looked up.
#include "bpf/splice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

namespace {

constexpr int kGoaway = -1;

// Positions count from the first byte of the server's stream, and the last one is its FIN, which takes a number as a byte
// does; sequence numbers start at `origin` and wrap.
struct Model {
  uint32_t origin;
  int boundary;             // position
  std::vector<int> client;  // client position -> server position, or kGoaway

  Model(uint32_t origin_in, int length, int boundary_in)
      : origin(origin_in), boundary(boundary_in) {
    for (int p = 0; p < length; ++p) {
      if (p == boundary) client.insert(client.end(), UNPIN_GOAWAY_LENGTH, kGoaway);
      client.push_back(p);
    }
    if (boundary == length) client.insert(client.end(), UNPIN_GOAWAY_LENGTH, kGoaway);
  }

  // The server bytes among client positions [from, to).
  std::vector<int> ServerBytes(int from, int to) const {
    std::vector<int> bytes;
    for (int c = from; c < to; ++c)
      if (client[c] != kGoaway) bytes.push_back(client[c]);
    return bytes;
  }
};

uint32_t Seed() {
  const char* given = std::getenv("UNPIN_SEED");
  const uint32_t seed = given ? std::strtoul(given, nullptr, 10) : std::random_device{}();
  std::cout << "UNPIN_SEED=" << seed << "\n";
  return seed;
}

class SpliceModel : public testing::Test {
 protected:
  static constexpr int kSteps = 400000;  // a test; three tests: over a million

  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Model NewModel() {
    const int length = Pick(1, 120);
    const uint32_t origin = Pick(0, 1) ? uint32_t(-Pick(0, 150)) : random_();
    return Model(origin, length, Pick(0, length));
  }
  static unpin_splice Splice(const Model& m, uint32_t state) {
    return {.boundary = m.origin + static_cast<uint32_t>(m.boundary), .state = state};
  }

  std::mt19937 random_{Seed()};
};

TEST_F(SpliceModel, EveryServerByteLandsAtItsPlaceInTheClientsStream) {
  for (int step = 0; step < kSteps; ++step) {
    const Model m = NewModel();
    const int length = static_cast<int>(m.client.size()) - UNPIN_GOAWAY_LENGTH;
    const uint32_t state = Pick(0, 1) ? UNPIN_SPLICE_COMMITTED : UNPIN_SPLICE_ACKNOWLEDGED;
    const unpin_splice splice = Splice(m, state);
    const int from = Pick(0, length - 1);
    int to = Pick(from + 1, length);
    const uint32_t seq = m.origin + from;
    if (splice_must_cut(&splice, seq, m.origin + to)) {
      ASSERT_TRUE(from < m.boundary && m.boundary < to);
      to = m.boundary;
    }
    const int at = static_cast<int>(splice_to_client(&splice, seq, m.origin + to) - m.origin);
    // Acknowledged: the client holds everything up to the end of the GOAWAY and discards what comes again.
    const int held = state == UNPIN_SPLICE_ACKNOWLEDGED ? m.boundary + UNPIN_GOAWAY_LENGTH : 0;
    for (int p = from; p < to; ++p) {
      const int place = at + (p - from);
      if (place < held) continue;
      ASSERT_EQ(m.client.at(place), p) << "origin " << m.origin << " boundary " << m.boundary
                                       << " [" << from << "," << to << ") state " << state;
    }
    // Nothing new to the client may be lost by the shift either.
    if (state == UNPIN_SPLICE_ACKNOWLEDGED && to > m.boundary) {
      ASSERT_LE(at + (std::max(from, m.boundary) - from),
                std::max(from, m.boundary) + UNPIN_GOAWAY_LENGTH);
    }
  }
}

TEST_F(SpliceModel, AnAcknowledgementCountsTheServerBytesReceived) {
  for (int step = 0; step < kSteps; ++step) {
    const Model m = NewModel();
    const unpin_splice splice = Splice(m, UNPIN_SPLICE_COMMITTED);
    const int ack = Pick(0, static_cast<int>(m.client.size()));
    const uint32_t translated = splice_to_server(&splice, m.origin + ack);
    ASSERT_EQ(translated - m.origin, m.ServerBytes(0, ack).size());
    ASSERT_EQ(splice_is_acknowledged_by(&splice, m.origin + ack),
              ack >= m.boundary + UNPIN_GOAWAY_LENGTH);
  }
}

TEST_F(SpliceModel, ASackBlockNamesExactlyTheServerBytesHeld) {
  for (int step = 0; step < kSteps; ++step) {
    const Model m = NewModel();
    const int size = static_cast<int>(m.client.size());
    const uint32_t state = Pick(0, 1) ? UNPIN_SPLICE_COMMITTED : UNPIN_SPLICE_ACKNOWLEDGED;
    const unpin_splice splice = Splice(m, state);
    const int left = Pick(0, size - 1), right = Pick(left + 1, size), ack = Pick(0, size);
    sack_block block = {m.origin + left, m.origin + right};
    const bool kept = splice_translate_sack(&splice, m.origin + ack, &block);
    const std::vector<int> bytes = m.ServerBytes(left, right);
    const bool hidden = state == UNPIN_SPLICE_COMMITTED && ack < m.boundary + UNPIN_GOAWAY_LENGTH &&
                        left >= m.boundary;
    ASSERT_EQ(kept, !bytes.empty() && !hidden);
    if (!kept) continue;
    ASSERT_EQ(block.left - m.origin, static_cast<uint32_t>(bytes.front()));
    ASSERT_EQ(block.right - m.origin, static_cast<uint32_t>(bytes.back() + 1));
  }
}

TEST(SpliceAge, BeyondHalfTheNumberSpaceEverythingIsShifted) {
  const uint32_t boundary = 4000000000u;
  unpin_splice splice = {.boundary = boundary, .state = UNPIN_SPLICE_ACKNOWLEDGED};
  uint64_t position = boundary;
  for (int step = 0; step < 400; ++step) {
    position += 50u << 20;  // 20 GB in all: five times around
    splice_age(&splice, static_cast<uint32_t>(position));
    const auto seq = static_cast<uint32_t>(position);
    ASSERT_EQ(splice_to_client(&splice, seq, seq + 1000), seq + 17) << position;
    ASSERT_EQ(splice_to_server(&splice, seq + 17), seq) << position;
  }
  EXPECT_EQ(splice.state, static_cast<uint32_t>(UNPIN_SPLICE_PAST));
}

}  // namespace
