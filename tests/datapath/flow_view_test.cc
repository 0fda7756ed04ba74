// SPDX-License-Identifier: Apache-2.0
// Two flows read as one connection, and every reason against moving it.
#include "userspace/datapath/flow_view.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/datapath/movable_pair.h"
#include "userspace/datapath/verdict_names.h"

namespace unpin {
namespace {

using std::chrono::seconds;

constexpr TimePoint kNow{seconds(10)};

Refusal Judge(const FlowPair& pair) { return RefusalOf(pair.c2s, pair.s2c, kNow, seconds(1)); }

TEST(FlowView, ReadsTwoFlowsAsOneConnection) {
  const Connection c = ConnectionOf(MovablePair(kNow), kNow, seconds(1));
  EXPECT_EQ(c.key.client.ToString(), "10.0.0.2:40000");
  EXPECT_EQ(c.key.vip.ToString(), "10.9.0.1:50051");
  EXPECT_EQ(c.snat.ToString(), "10.1.255.1:1024");
  EXPECT_EQ(c.service, 3u);
  EXPECT_EQ(c.backend, 17u);
  EXPECT_EQ(c.protocol, Protocol::kH2);
  EXPECT_EQ(c.refusal, Refusal::kNone);
  EXPECT_EQ(c.created, TimePoint(seconds(5)));
  EXPECT_EQ(c.last_seen, TimePoint(seconds(5) + Duration(200)));
  EXPECT_EQ(c.streams_begun, 5u);  // ids 1, 3, 5, 7, 9
  EXPECT_EQ(c.streams_ended, 4u);
  EXPECT_EQ(c.open_streams(), 1u);
  EXPECT_EQ(c.bytes_to_server, 1111u);
  EXPECT_EQ(c.bytes_to_client, 2222u);
}

TEST(FlowView, IsClosedByOneResetOrTwoFins) {
  struct Case {
    uint8_t c2s, s2c;
    bool closed;
  };
  for (const auto& [c2s, s2c, closed] :
       {Case{0, 0, false}, Case{UNPIN_FLOW_FIN, 0, false}, Case{0, UNPIN_FLOW_FIN, false},
        Case{UNPIN_FLOW_FIN, UNPIN_FLOW_FIN, true}, Case{UNPIN_FLOW_RST, 0, true},
        Case{0, UNPIN_FLOW_RST, true}}) {
    FlowPair pair = MovablePair(kNow);
    pair.c2s.flags = c2s;
    pair.s2c.flags = s2c;
    EXPECT_EQ(ConnectionOf(pair, kNow, seconds(1)).closed, closed) << int{c2s} << " " << int{s2c};
  }
}

TEST(FlowView, TheServersAnswerMayRefuteThePreface) {
  struct Case {
    uint8_t c2s, s2c;
    Protocol protocol;
  };
  const Case cases[] = {
      {UNPIN_PROTOCOL_UNKNOWN, UNPIN_PROTOCOL_UNKNOWN, Protocol::kUnknown},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_UNKNOWN, Protocol::kH2},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_H2, Protocol::kH2},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_HTTP1, Protocol::kOpaque},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_OPAQUE, Protocol::kOpaque},
      {UNPIN_PROTOCOL_TLS, UNPIN_PROTOCOL_TLS, Protocol::kTls},
      {UNPIN_PROTOCOL_TLS, UNPIN_PROTOCOL_OPAQUE, Protocol::kTls},
      {UNPIN_PROTOCOL_HTTP1, UNPIN_PROTOCOL_H2, Protocol::kHttp1},
      {UNPIN_PROTOCOL_OPAQUE, UNPIN_PROTOCOL_H2, Protocol::kOpaque},
  };
  for (const Case& c : cases) {
    FlowPair pair = MovablePair(kNow);
    pair.c2s.follower.protocol = c.c2s;
    pair.s2c.follower.protocol = c.s2c;
    EXPECT_EQ(ProtocolOf(pair.c2s, pair.s2c), c.protocol) << int{c.c2s} << " " << int{c.s2c};
  }
}

TEST(FlowView, TheProtocolRefusesAsTheDataPlaneDoes) {
  struct Case {
    uint8_t c2s, s2c;
    Refusal refusal;
  };
  const Case cases[] = {
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_H2, Refusal::kNone},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_UNKNOWN, Refusal::kUndecided},
      {UNPIN_PROTOCOL_UNKNOWN, UNPIN_PROTOCOL_H2, Refusal::kUndecided},
      {UNPIN_PROTOCOL_UNKNOWN, UNPIN_PROTOCOL_OPAQUE, Refusal::kOpaque},
      {UNPIN_PROTOCOL_H2, UNPIN_PROTOCOL_HTTP1, Refusal::kHttp1},
      {UNPIN_PROTOCOL_TLS, UNPIN_PROTOCOL_OPAQUE, Refusal::kTls},
  };
  for (const Case& c : cases) {
    FlowPair pair = MovablePair(kNow);
    pair.c2s.follower.protocol = c.c2s;
    pair.s2c.follower.protocol = c.s2c;
    EXPECT_EQ(Judge(pair), c.refusal) << int{c.c2s} << " " << int{c.s2c};
  }
}

TEST(FlowView, EveryReasonIsNamed) {
  for (const Reason& reason : ReasonsAgainstMoving(kNow)) {
    FlowPair pair = MovablePair(kNow);
    reason.bring_about(pair);
    EXPECT_EQ(Judge(pair), reason.refusal);
  }
}

TEST(FlowView, TheFirstReasonIsTheOneGiven) {
  const std::vector<Reason> reasons = ReasonsAgainstMoving(kNow);
  for (size_t first = 0; first < reasons.size(); ++first) {
    for (size_t later = first + 1; later < reasons.size(); ++later) {
      FlowPair pair = MovablePair(kNow);
      reasons[later].bring_about(pair);
      reasons[first].bring_about(pair);
      EXPECT_EQ(Judge(pair), reasons[first].refusal) << first << " before " << later;
    }
  }
}

TEST(FlowView, AnArmedConnectionMayBeArmedAgain) {
  for (const uint32_t state : {UNPIN_SPLICE_ARMED, UNPIN_SPLICE_ARMED_TRIM}) {
    FlowPair pair = MovablePair(kNow);
    pair.s2c.splice.state = state;
    EXPECT_EQ(Judge(pair), Refusal::kNone);
  }
}

TEST(VerdictNames, AreTheEnumeratorsInLowerCaseAndUnique) {
  std::set<std::string> names;
  for (int verdict = UNPIN_CONTINUE + 1; verdict < UNPIN_VERDICT_COUNT; ++verdict) {
    names.insert(std::string(VerdictName(static_cast<unpin_verdict>(verdict))));
  }
  EXPECT_EQ(names.size(), size_t{UNPIN_VERDICT_COUNT} - 1);
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_EQ(VerdictName(UNPIN_FORWARD_C2S), "forward_c2s");
  EXPECT_EQ(VerdictName(UNPIN_DROP_INTERNAL), "drop_internal");
}

}  // namespace
}  // namespace unpin
