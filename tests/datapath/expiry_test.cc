// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/expiry.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace unpin {
namespace {

using std::chrono::seconds;

constexpr ExpirySettings kSettings = {
    .established = seconds(1000), .closing = seconds(100), .closed = seconds(10)};
constexpr uint64_t kSecond = 1'000'000'000;

unpin_flow_key ClientKey(uint16_t port) {
  return {.source = htonl(1),
          .destination = htonl(2),
          .source_port = htons(port),
          .destination_port = htons(80)};
}

unpin_flow_key BackendKey(uint16_t port) {
  return {.source = htonl(3),
          .destination = htonl(4),
          .source_port = htons(8080),
          .destination_port = htons(port)};
}

// A connection whose client was last seen at second `c2s_seen`, its server at `s2c_seen`.
std::vector<FlowMark> Pair(uint64_t c2s_seen, uint64_t s2c_seen, uint8_t c2s_flags,
                           uint8_t s2c_flags) {
  return {{.key = ClientKey(5),
           .reverse = BackendKey(6),
           .last_seen_ns = c2s_seen * kSecond,
           .flags = c2s_flags,
           .direction = UNPIN_C2S},
          {.key = BackendKey(6),
           .reverse = ClientKey(5),
           .last_seen_ns = s2c_seen * kSecond,
           .flags = s2c_flags,
           .direction = UNPIN_S2C}};
}

bool ExpiresAt(const std::vector<FlowMark>& marks, int64_t second) {
  return !FindExpired(marks, TimePoint(seconds(second)), kSettings).empty();
}

TEST(Expiry, HowLongDependsOnHowFarItHasClosed) {
  struct Case {
    const char* name;
    uint8_t c2s, s2c;
    int64_t quiet;
  };
  const Case cases[] = {
      {"established", 0, 0, 1000},
      {"client said FIN", UNPIN_FLOW_FIN, 0, 100},
      {"server said FIN", 0, UNPIN_FLOW_FIN, 100},
      {"both said FIN", UNPIN_FLOW_FIN, UNPIN_FLOW_FIN, 10},
      {"client reset", UNPIN_FLOW_RST, 0, 10},
      {"server reset", 0, UNPIN_FLOW_RST, 10},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto marks = Pair(50, 50, c.c2s, c.s2c);
    EXPECT_FALSE(ExpiresAt(marks, 50 + c.quiet - 1));
    EXPECT_TRUE(ExpiresAt(marks, 50 + c.quiet));
  }
}

TEST(Expiry, TheNewestPacketOfEitherDirectionCounts) {
  EXPECT_FALSE(ExpiresAt(Pair(1, 500, 0, 0), 1400));
  EXPECT_FALSE(ExpiresAt(Pair(500, 1, 0, 0), 1400));
  EXPECT_TRUE(ExpiresAt(Pair(500, 1, 0, 0), 1500));
}

TEST(Expiry, BothDirectionsGoTogetherClientFirst) {
  auto marks = Pair(1, 1, 0, 0);
  std::swap(marks[0], marks[1]);  // the table has no order
  const auto expired = FindExpired(marks, TimePoint(seconds(2000)), kSettings);
  ASSERT_EQ(expired.size(), 1u);
  ASSERT_EQ(expired[0].size(), 2u);
  EXPECT_EQ(expired[0][0].direction, UNPIN_C2S);
  EXPECT_EQ(expired[0][1].direction, UNPIN_S2C);
}

TEST(Expiry, APacketYoungerThanTheClockDoesNotExpire) {
  EXPECT_FALSE(ExpiresAt(Pair(60, 60, 3, 3), 50));
}

TEST(Expiry, AnOrphanRestsByItselfAndItsClientsNewConnectionStays) {
  auto marks = Pair(100, 100, 0, 0);
  marks.push_back({.key = BackendKey(7),
                   .reverse = ClientKey(5),  // by now the key of the new connection
                   .last_seen_ns = 95 * kSecond,
                   .flags = UNPIN_FLOW_FIN | UNPIN_FLOW_RST | UNPIN_FLOW_ORPHAN,
                   .direction = UNPIN_S2C});
  EXPECT_FALSE(ExpiresAt(marks, 104));
  const auto expired = FindExpired(marks, TimePoint(seconds(105)), kSettings);
  ASSERT_EQ(expired.size(), 1u);
  ASSERT_EQ(expired[0].size(), 1u);
  EXPECT_EQ(expired[0][0].key.destination_port, htons(7));
}

TEST(Expiry, AFlowWithoutItsOtherDirectionCountsAsClosed) {
  auto marks = Pair(50, 50, 0, 0);
  marks.pop_back();
  EXPECT_FALSE(ExpiresAt(marks, 59));
  EXPECT_TRUE(ExpiresAt(marks, 60));
}

}  // namespace
}  // namespace unpin
