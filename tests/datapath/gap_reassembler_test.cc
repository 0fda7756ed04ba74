// SPDX-License-Identifier: Apache-2.0
// Random HTTP/2 streams, cut, shuffled, duplicated and with bytes inside frames missing: the follower must end as a plain
// in-order parser does, which is written here from RFC 9113 and shares nothing with the code under test.
#include "userspace/datapath/gap_reassembler.h"

#include "bpf/http2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

namespace unpin {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t kData = 0, kHeaders = 1, kResetStream = 3, kSettings = 4, kPing = 6, kGoaway = 7,
                  kWindowUpdate = 8, kContinuation = 9;
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Frame {
  uint32_t length;
  uint8_t type;
  uint8_t flags;
  uint32_t stream;
};

void Append(Bytes& out, const Frame& frame, std::mt19937& random) {
  const uint32_t length = frame.length, stream = frame.stream;
  for (const uint32_t byte :
       {length >> 16, length >> 8, length, uint32_t{frame.type}, uint32_t{frame.flags},
        stream >> 24, stream >> 16, stream >> 8, stream}) {
    out.push_back(static_cast<uint8_t>(byte));
  }
  for (uint32_t i = 0; i < length; ++i) out.push_back(static_cast<uint8_t>(random()));
}

struct Totals {
  size_t next_header = 0;  // offset
  uint32_t last_stream = 0;
  uint32_t streams_ended = 0;
  bool in_header_block = false;
  bool goaway = false;
  Bytes partial;
  std::vector<size_t> headers = {};  // offsets of all whole ones; not compared

  auto Compared() const {
    return std::tie(next_header, last_stream, streams_ended, in_header_block, goaway, partial);
  }
  friend bool operator==(const Totals& a, const Totals& b) { return a.Compared() == b.Compared(); }
};

std::ostream& operator<<(std::ostream& out, const Totals& t) {
  return out << "next " << t.next_header << " last stream " << t.last_stream << " ended "
             << t.streams_ended << " block " << t.in_header_block << " goaway " << t.goaway
             << " partial " << t.partial.size();
}

// Reads whole frames from `offset` on, in order.
Totals ParseInOrder(const Bytes& bytes, size_t offset, bool client_side, Totals totals) {
  while (offset + 9 <= bytes.size()) {
    totals.headers.push_back(offset);
    const uint8_t* h = &bytes[offset];
    const uint32_t length = h[0] * 65536 + h[1] * 256 + h[2];
    const uint32_t stream = (h[5] & 127) * 16777216 + h[6] * 65536 + h[7] * 256 + h[8];
    const bool ends_headers = h[4] & 4, ends_stream = h[4] & 1;
    if (h[3] == kHeaders || h[3] == kContinuation) totals.in_header_block = !ends_headers;
    if (h[3] == kGoaway) totals.goaway = true;
    if (client_side) {
      if (h[3] == kHeaders) totals.last_stream = std::max(totals.last_stream, stream);
      if (h[3] == kResetStream) ++totals.streams_ended;
    } else if ((h[3] == kData || h[3] == kHeaders) && ends_stream) {
      ++totals.streams_ended;
      totals.last_stream = stream;
    } else if (h[3] == kResetStream && stream != totals.last_stream) {
      ++totals.streams_ended;
    }
    offset += 9 + length;
  }
  totals.next_header = offset;
  totals.partial.assign(bytes.begin() + std::min(offset, bytes.size()), bytes.end());
  return totals;
}

// What a peer might send: settings first, then any mix of frames, header blocks kept whole.
Bytes RandomStream(std::mt19937& random, bool client_side) {
  Bytes out = client_side ? Bytes(kPreface, kPreface + 24) : Bytes();
  Append(out, {.length = 6, .type = kSettings, .flags = 0, .stream = 0}, random);
  Append(out, {8, kPing, 0, 0}, random);
  uint32_t stream = 1;
  const auto length = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  for (uint32_t frames = 5 + length(60); frames > 0; --frames) {
    switch (random() % 8) {
      case 0:
        Append(out, {length(300), kHeaders, static_cast<uint8_t>(random() % 2), stream}, random);
        for (uint32_t more = length(3); more > 0; --more)
          Append(out, {length(40), kContinuation, 0, stream}, random);
        Append(out, {length(40), kContinuation, 4, stream}, random);
        break;
      case 1:
        Append(out, {length(200), kHeaders, static_cast<uint8_t>(4 | random() % 2), stream},
               random);
        break;
      case 2:
        Append(out, {4, kResetStream, 0, 1 + 2 * length(stream / 2)}, random);
        break;
      case 3:
        Append(out, {4, kWindowUpdate, 0, length(1) * stream}, random);
        break;
      case 4:
        Append(out, {8, kPing, 1, 0}, random);
        break;
      case 5:
        Append(out, {length(20000), kData, static_cast<uint8_t>(random() % 2), stream}, random);
        break;
      case 6:
        Append(out, {length(100), kData, static_cast<uint8_t>(random() % 2), stream}, random);
        break;
      default:
        stream += 2;
    }
  }
  if (random() % 4 == 0) Append(out, {8, kGoaway, 0, 0}, random);
  return out;
}

struct Segment {
  size_t offset;
  size_t length;

  bool Touches(size_t begin, size_t end) const { return offset < end && begin < offset + length; }
};

// Every byte from `from` to `to` at least once, in random order; some twice, cut otherwise.
std::vector<Segment> RandomSegments(std::mt19937& random, size_t from, size_t to) {
  std::vector<Segment> segments;
  const size_t most = random() % 3 == 0 ? 12 : 1460;
  for (size_t at = from; at < to;) {
    const size_t length = std::min<size_t>(1 + random() % most, to - at);
    segments.push_back({at, length});
    at += length;
  }
  for (size_t again = segments.size() / 4; again > 0; --again) {
    const size_t at = from + random() % (to - from);
    segments.push_back({at, std::min<size_t>(1 + random() % 1460, to - at)});
  }
  std::shuffle(segments.begin(), segments.end(), random);
  return segments;
}

// One recovery: the data plane followed to `gap`, then everything came in some order.
struct Case {
  uint32_t seed;
  bool client_side;
  uint32_t first;  // sequence number of offset 0
  Bytes stream;
  Totals at_gap;
  Totals expected;

  uint32_t Sequence(size_t offset) const { return first + static_cast<uint32_t>(offset); }
};

Case RandomCase(uint32_t seed) {
  std::mt19937 random(seed);
  Case c;
  c.seed = seed;
  c.client_side = random() % 2;
  c.first =
      random() % 2 ? static_cast<uint32_t>(0 - random() % 100000) : static_cast<uint32_t>(random());
  c.stream = RandomStream(random, c.client_side);
  const size_t start = c.client_side ? 24 : 0;
  const size_t first_frame = start + 15;
  if (random() % 2) c.stream.resize(std::max(first_frame + 1, c.stream.size() - random() % 40));
  const size_t seen = first_frame + random() % (c.stream.size() - first_frame);
  c.at_gap =
      ParseInOrder(Bytes(c.stream.begin(), c.stream.begin() + seen), start, c.client_side, {});
  Totals from = c.at_gap;
  from.headers.clear();
  c.expected = ParseInOrder(c.stream, c.at_gap.next_header, c.client_side, from);
  return c;
}

unpin_follower FollowerAt(const Case& c) {
  unpin_follower follower = {};
  follower.next_header = c.Sequence(c.at_gap.next_header);
  follower.highest_seen = c.Sequence(c.stream.size());
  follower.epoch = 7;
  follower.last_stream = c.at_gap.last_stream;
  follower.streams_ended = c.at_gap.streams_ended;
  std::copy(c.at_gap.partial.begin(), c.at_gap.partial.end(), follower.partial);
  follower.partial_length = static_cast<uint8_t>(c.at_gap.partial.size());
  follower.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
  if (c.at_gap.in_header_block) follower.flags |= UNPIN_FOLLOWER_IN_HEADER_BLOCK;
  if (c.at_gap.goaway) follower.flags |= UNPIN_FOLLOWER_GOAWAY_SEEN;
  follower.protocol = UNPIN_PROTOCOL_H2;
  follower.direction = c.client_side ? UNPIN_C2S : UNPIN_S2C;
  return follower;
}

Totals TotalsOf(const Case& c, const unpin_follower& f) {
  return {.next_header = f.next_header - c.first,
          .last_stream = f.last_stream,
          .streams_ended = f.streams_ended,
          .in_header_block = (f.flags & UNPIN_FOLLOWER_IN_HEADER_BLOCK) != 0,
          .goaway = (f.flags & UNPIN_FOLLOWER_GOAWAY_SEEN) != 0,
          .partial = Bytes(f.partial, f.partial + f.partial_length)};
}

void Feed(GapReassembler& gap, const Case& c, const Segment& segment) {
  gap.Add(c.Sequence(segment.offset), std::span(c.stream).subspan(segment.offset, segment.length));
}

// Whole and partial headers from the gap on: what a recovery cannot do without.
bool HoldsHeaderBytes(const Case& c, const Segment& segment) {
  for (const size_t header : c.expected.headers) {
    if (segment.Touches(header, header + 9)) return true;
  }
  return segment.Touches(c.expected.next_header, c.expected.next_header + 9);
}

constexpr uint32_t kCases = 2000;

// Calls `check` with the case, its segments in random order and a reassembler in the state of the gap.
template <typename Check>
void ForEachCase(Check check) {
  for (uint32_t seed = 1; seed <= kCases && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case c = RandomCase(seed);
    std::mt19937 random(seed + kCases);
    const size_t from = std::min(c.at_gap.next_header, c.stream.size() - 1);
    check(c, RandomSegments(random, from, c.stream.size()), GapReassembler(FollowerAt(c)), random);
  }
}

TEST(GapReassembler, EndsWhereAnInOrderParserEnds) {
  ForEachCase([](const Case& c, const std::vector<Segment>& segments, GapReassembler gap, auto&) {
    for (const Segment& segment : segments) Feed(gap, c, segment);
    ASSERT_TRUE(gap.caught_up());
    ASSERT_EQ(TotalsOf(c, gap.follower()), c.expected);
    ASSERT_EQ(gap.memory_bytes(), 0u);
  });
}

TEST(GapReassembler, DoesWithoutBytesInsideFrames) {
  size_t left_out = 0;
  ForEachCase([&](const Case& c, const std::vector<Segment>& segments, GapReassembler gap, auto&) {
    for (const Segment& segment : segments) {
      if (HoldsHeaderBytes(c, segment))
        Feed(gap, c, segment);
      else
        ++left_out;
    }
    ASSERT_TRUE(gap.caught_up());
    ASSERT_EQ(TotalsOf(c, gap.follower()), c.expected);
  });
  EXPECT_GT(left_out, kCases);  // else this test shows nothing
}

TEST(GapReassembler, IsNeverCaughtUpWithoutAHeaderByte) {
  size_t tried = 0;
  ForEachCase(
      [&](const Case& c, const std::vector<Segment>& segments, GapReassembler gap, auto& random) {
        if (c.expected.headers.empty()) return;
        const size_t header = c.expected.headers[random() % c.expected.headers.size()];
        const size_t missing = header + random() % 9;
        if (header == c.at_gap.next_header && missing - header < c.at_gap.partial.size()) return;
        for (const Segment& segment : segments) {
          if (!segment.Touches(missing, missing + 1)) Feed(gap, c, segment);
        }
        ++tried;
        ASSERT_FALSE(gap.caught_up());
        // A lost segment may have held earlier headers too: it waits for the first of them.
        ASSERT_FALSE(seq_before(c.Sequence(header), gap.follower().next_header));
      });
  EXPECT_GT(tried, kCases / 2);
}

TEST(GapReassembler, FollowsFromInsideThePreface) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Case c;
    c.client_side = true;
    c.first = 0xfffffff0;
    c.stream = RandomStream(random, true);
    c.expected = ParseInOrder(c.stream, 24, true, {});
    const size_t matched = random() % 24;
    unpin_follower start = {};
    start.next_header = c.first;
    start.partial_length = static_cast<uint8_t>(matched);
    start.highest_seen = c.Sequence(c.stream.size());
    start.flags = UNPIN_FOLLOWER_PREFACE;
    start.direction = UNPIN_C2S;
    GapReassembler gap(start);
    for (const Segment& s : RandomSegments(random, matched, c.stream.size())) Feed(gap, c, s);
    ASSERT_TRUE(gap.caught_up());
    ASSERT_EQ(gap.follower().protocol, UNPIN_PROTOCOL_H2);
    ASSERT_EQ(TotalsOf(c, gap.follower()), c.expected);
  }
}

TEST(GapReassembler, WaitsForWhatTheDataPlaneSawMeanwhile) {
  std::mt19937 random(1);
  Bytes stream;
  Append(stream, {8, kPing, 0, 0}, random);
  Append(stream, {8, kPing, 1, 0}, random);
  unpin_follower start = {};
  start.next_header = 1000;
  start.highest_seen = 1017;
  start.protocol = UNPIN_PROTOCOL_H2;
  start.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
  GapReassembler gap(start);
  gap.Add(1000, std::span(stream).first(17));
  ASSERT_TRUE(gap.caught_up());
  gap.RaiseHighestSeen(1034);
  EXPECT_FALSE(gap.caught_up());
  gap.Add(1017, std::span(stream).subspan(17));
  EXPECT_TRUE(gap.caught_up());
  EXPECT_EQ(gap.follower().next_header, 1034u);
}

TEST(GapReassembler, HasNothingToWaitForOnceItIsNotHttp2) {
  unpin_follower start = {};
  start.next_header = 1000;
  start.highest_seen = 5000;
  start.protocol = UNPIN_PROTOCOL_H2;
  start.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
  GapReassembler gap(start);
  gap.Add(1000, Bytes{0, 0, 3, kPing, 0, 0, 0, 0, 1});  // RFC 9113 section 6.7: PING is of stream 0
  EXPECT_TRUE(gap.caught_up());
  EXPECT_EQ(gap.follower().protocol, UNPIN_PROTOCOL_OPAQUE);
}

TEST(GapReassembler, KnowsWhatItKeeps) {
  unpin_follower start = {};
  start.next_header = 1000;
  start.highest_seen = 1000;
  start.protocol = UNPIN_PROTOCOL_H2;
  start.flags = UNPIN_FOLLOWER_SETTINGS_SEEN;
  GapReassembler gap(start);
  gap.Add(2000, Bytes(100));
  const size_t one = gap.memory_bytes();
  EXPECT_GE(one, 100u);
  gap.Add(2000, Bytes(100));  // the same again costs nothing
  gap.Add(2010, Bytes(50));
  EXPECT_EQ(gap.memory_bytes(), one);
  gap.Add(1990, Bytes(120));  // ten bytes before and ten after are new
  EXPECT_GE(gap.memory_bytes(), one + 20);
  EXPECT_LT(gap.memory_bytes(), 2 * one + 240);
}

}  // namespace
}  // namespace unpin
