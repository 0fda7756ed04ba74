// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/splicer.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cstring>

#include "tests/datapath/loaded_program.h"
#include "userspace/base/unique_fd.h"

namespace unpin {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SplicerTest : public LoadedProgram {
 protected:
  void SetUp() override {
    LoadedProgram::SetUp();
    auto splicer = KernelSplicer::Open(*program_);
    ASSERT_TRUE(splicer.ok()) << splicer.status();
    splicer_ = *std::move(splicer);
  }

  Splicer::Armed Arm(const FlowPair& pair, bool allow_trim = false) {
    const auto armed = splicer_->Arm(ConnectionKeyOf(pair.key), allow_trim, seconds(1));
    EXPECT_TRUE(armed.ok()) << armed.status();
    return armed.ok() ? *armed : Splicer::Armed{};
  }
  absl::Status Emit(const FlowPair& pair) {
    return splicer_->EmitGoaway(ConnectionKeyOf(pair.key));
  }

  // In the middle of a frame: it commits only when a packet ends at a boundary.
  FlowPair BusyPair() const {
    FlowPair pair = MovablePair(Now());
    pair.s2c.follower.next_header += 100;
    return pair;
  }

  FlowPair PairWithSplice(uint32_t state) const {
    FlowPair pair = MovablePair(Now());
    pair.c2s.splice = pair.s2c.splice = {.boundary = 1000, .state = state};
    return pair;
  }

  std::unique_ptr<KernelSplicer> splicer_;
};

TEST_F(SplicerTest, AnIdleConnectionCommitsAtOnceOnce) {
  const FlowPair pair = MovablePair(Now());
  Insert(pair);
  const Splicer::Armed armed = Arm(pair);
  EXPECT_EQ(armed.refusal, Refusal::kNone);
  EXPECT_TRUE(armed.committed);
  EXPECT_EQ(armed.boundary, 1000u);
  EXPECT_EQ(Read(pair).c2s.splice.state, uint32_t{UNPIN_SPLICE_COMMITTED});
  EXPECT_EQ(Read(pair).s2c.splice.boundary, 1000u);
  EXPECT_THAT(*splicer_->Unacknowledged(), ElementsAre(ConnectionKeyOf(pair.key)));

  const Splicer::Armed again = Arm(pair);
  EXPECT_EQ(again.refusal, Refusal::kAlreadyMoved);
  EXPECT_FALSE(again.committed);
  EXPECT_TRUE(absl::IsFailedPrecondition(splicer_->Disarm(ConnectionKeyOf(pair.key))));
}

TEST_F(SplicerTest, ABusyConnectionIsArmedAndDisarmed) {
  const FlowPair pair = BusyPair();
  Insert(pair);
  EXPECT_FALSE(Arm(pair).committed);
  EXPECT_EQ(Read(pair).s2c.splice.state, uint32_t{UNPIN_SPLICE_ARMED});
  EXPECT_EQ(Arm(pair, /*allow_trim=*/true).refusal, Refusal::kNone);
  EXPECT_EQ(Read(pair).s2c.splice.state, uint32_t{UNPIN_SPLICE_ARMED_TRIM});
  EXPECT_THAT(*splicer_->Unacknowledged(), IsEmpty());
  EXPECT_TRUE(splicer_->Disarm(ConnectionKeyOf(pair.key)).ok());
  EXPECT_EQ(Read(pair).s2c.splice.state, uint32_t{UNPIN_SPLICE_NONE});
}

TEST_F(SplicerTest, AConnectionThatIsGoneIsSaidToBe) {
  const FlowPair pair = MovablePair(Now());
  EXPECT_EQ(Arm(pair).refusal, Refusal::kNotFound);
  EXPECT_TRUE(absl::IsNotFound(splicer_->Disarm(ConnectionKeyOf(pair.key))));
  EXPECT_TRUE(absl::IsNotFound(Emit(pair)));
  ASSERT_TRUE(FlowTable().Put(pair.key, pair.c2s).ok());  // its other half has gone
  EXPECT_EQ(Arm(pair).refusal, Refusal::kNotFound);
}

// What the list of connections says must be what a move is told: each reason, and each pair of reasons.
TEST_F(SplicerTest, TheKernelRefusesForTheReasonThatTheListShows) {
  const TimePoint now = Now();
  const std::vector<Reason> reasons = ReasonsAgainstMoving(now);
  for (size_t first = 0; first < reasons.size(); ++first) {
    for (size_t later = first; later < reasons.size(); ++later) {
      // An hour and a minute: a slow run does not change what is young.
      FlowPair pair = MovablePair(now - std::chrono::hours(1));
      reasons[later].bring_about(pair);
      reasons[first].bring_about(pair);
      Insert(pair);
      const auto armed = splicer_->Arm(ConnectionKeyOf(pair.key), false, std::chrono::minutes(1));
      ASSERT_TRUE(armed.ok()) << armed.status();
      EXPECT_EQ(armed->refusal, reasons[first].refusal) << first << " before " << later;
      EXPECT_EQ(RefusalOf(pair.c2s, pair.s2c, now, std::chrono::minutes(1)), armed->refusal);
    }
  }
}

class EmitTest : public SplicerTest {
 protected:
  void SetUp() override {
    SplicerTest::SetUp();
    MakeVeth("flveth");
    // Fails the test rather than hangs it if nothing comes.
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    sockaddr_ll peer = {};
    peer.sll_family = AF_PACKET;
    peer.sll_protocol = htons(ETH_P_IP);
    peer.sll_ifindex = static_cast<int>(if_nametoindex("flvethp"));
    ASSERT_EQ(setsockopt(peer_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    ASSERT_EQ(bind(peer_.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0)
        << strerror(errno);
  }
  void TearDown() override {
    RemoveInterface("flveth");
    SplicerTest::TearDown();
  }

  // A committed connection whose client is behind the veth.
  FlowPair CommittedPair() const {
    FlowPair pair = PairWithSplice(UNPIN_SPLICE_COMMITTED);
    pair.s2c.rewrite.egress_ifindex = if_nametoindex("flveth");
    const uint8_t client_mac[6] = {2, 0, 0, 0, 0, 12};
    std::memcpy(pair.s2c.rewrite.destination_mac, client_mac, sizeof(client_mac));
    pair.s2c.tcp = {.ack = 77, .tsval = 0, .tsecr = 0, .window = 500, .has_timestamp = 0, .pad = 0};
    return pair;
  }

  std::vector<uint8_t> Receive() const {
    std::vector<uint8_t> frame(2000);
    const ssize_t size = recv(peer_.get(), frame.data(), frame.size(), 0);
    EXPECT_GE(size, 0) << strerror(errno);
    frame.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return frame;
  }

  UniqueFd peer_{socket(AF_PACKET, SOCK_RAW, 0)};
};

TEST_F(EmitTest, PutsTheGoawayOnTheWire) {
  const FlowPair pair = CommittedPair();
  Insert(pair);
  ASSERT_TRUE(Emit(pair).ok()) << Emit(pair);
  const std::vector<uint8_t> frame = Receive();
  ASSERT_EQ(frame.size(), 14u + 20 + 20 + 17);
  const std::vector<uint8_t> mac(frame.begin(), frame.begin() + 6);
  EXPECT_THAT(mac, ElementsAre(2, 0, 0, 0, 0, 12));
  const std::vector<uint8_t> addresses(frame.begin() + 26, frame.begin() + 38);
  EXPECT_THAT(addresses, ElementsAre(10, 9, 0, 1, 10, 0, 0, 2, 0xc3, 0x83, 0x9c, 0x40));
  const std::vector<uint8_t> numbers(frame.begin() + 38, frame.begin() + 46);
  EXPECT_THAT(numbers, ElementsAre(0, 0, 0x03, 0xe8, 0, 0, 0, 77));  // boundary 1000
  const std::vector<uint8_t> goaway(frame.begin() + 54, frame.end());
  EXPECT_THAT(goaway, ElementsAre(0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0));
}

TEST_F(EmitTest, SaysWhyThereIsNothingToSend) {
  Insert(PairWithSplice(UNPIN_SPLICE_ARMED));
  EXPECT_TRUE(absl::IsNotFound(Emit(MovablePair(Now()))));
  for (const uint32_t state : {UNPIN_SPLICE_ACKNOWLEDGED, UNPIN_SPLICE_PAST}) {
    Insert(PairWithSplice(state));
    const absl::Status status = Emit(MovablePair(Now()));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("already has it"));
    EXPECT_THAT(*splicer_->Unacknowledged(), IsEmpty());
  }
  FlowPair reset = CommittedPair();
  reset.c2s.flags = UNPIN_FLOW_RST;
  Insert(reset);
  EXPECT_TRUE(absl::IsNotFound(Emit(reset)));
  EXPECT_THAT(*splicer_->Unacknowledged(), IsEmpty());
}

TEST_F(EmitTest, ServerFinDoesNotSpareTheClientItsGoaway) {
  FlowPair pair = CommittedPair();
  pair.s2c.flags =
      UNPIN_FLOW_FIN;  // FIN is beyond the 17 bytes: without them the client never sees it
  Insert(pair);
  EXPECT_TRUE(Emit(pair).ok());
  EXPECT_THAT(*splicer_->Unacknowledged(), ElementsAre(ConnectionKeyOf(pair.key)));
}

// Its RST is beyond the 17 bytes: a client that lacks them answers it with an ACK and stays (RFC 5961 section 3.2).
TEST_F(EmitTest, ServerResetDoesNotSpareTheClientItsGoaway) {
  FlowPair pair = CommittedPair();
  pair.s2c.flags = UNPIN_FLOW_RST;
  Insert(pair);
  EXPECT_TRUE(Emit(pair).ok()) << Emit(pair);
  EXPECT_EQ(Receive().size(), 14u + 20 + 20 + 17);
  EXPECT_THAT(*splicer_->Unacknowledged(), ElementsAre(ConnectionKeyOf(pair.key)));
}

// NotFound would mean that the connection is gone, and end the resending.
TEST_F(EmitTest, ATroubledInterfaceIsWorthAnotherTry) {
  FlowPair pair = CommittedPair();
  pair.s2c.rewrite.egress_ifindex = 999999;
  Insert(pair);
  EXPECT_TRUE(absl::IsUnavailable(Emit(pair))) << Emit(pair);
  pair = CommittedPair();
  Insert(pair);
  unpin::Run("ip link set flveth down");
  EXPECT_TRUE(absl::IsUnavailable(Emit(pair))) << Emit(pair);
}

TEST_F(SplicerTest, PinsFillUpAndFreeAgain) {
  const IpAddress client = {0x0a000002};
  const TimePoint expires = Now() + seconds(60);
  for (MoveId move = 1; move <= UNPIN_PINS_PER_CLIENT; ++move)
    ASSERT_TRUE(splicer_->AddPin(3, client, 17, move, expires).ok());
  const absl::Status full = splicer_->AddPin(3, client, 17, 99, expires);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr("10.0.0.2"));
  EXPECT_TRUE(splicer_->AddPin(4, client, 17, 99, expires).ok());  // another service has its own
  ASSERT_TRUE(splicer_->RemovePin(3, client, 5).ok());
  ASSERT_TRUE(splicer_->RemovePin(3, client, 5).ok());
  EXPECT_TRUE(splicer_->AddPin(3, client, 18, 99, expires).ok());

  const unpin_pin_key key = {.service = 3, .client = htonl(client.bits)};
  const auto pins =
      BpfMap<unpin_pin_key, unpin_client_pins>::Open(program_->data_plane().maps.pins);
  const auto of_client = pins->Get(key);
  ASSERT_TRUE(of_client.ok()) << of_client.status();
  const unpin_pin& pin = of_client->pins[4];  // the one that was freed
  EXPECT_EQ(pin.move, 99u);
  EXPECT_EQ(pin.backend, 18u);
  EXPECT_EQ(pin.expires_ns, NanosecondsOf(expires));
}

TEST_F(SplicerTest, AnExpiredPinMakesRoom) {
  const IpAddress client = {0x0a000002};
  for (MoveId move = 1; move <= UNPIN_PINS_PER_CLIENT; ++move)
    ASSERT_TRUE(splicer_->AddPin(3, client, 17, move, Now() - seconds(1)).ok());
  EXPECT_TRUE(splicer_->AddPin(3, client, 17, 99, Now() + seconds(60)).ok());
}

}  // namespace
}  // namespace unpin
