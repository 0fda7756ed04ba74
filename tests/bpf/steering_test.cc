// SPDX-License-Identifier: Apache-2.0
// Which backend a new connection gets, and under which source port.
#include <arpa/inet.h>

#include <set>

#include <gtest/gtest.h>

#include "tests/bpf/scene.h"

namespace unpin::testkit {
namespace {

constexpr uint64_t kFarFuture = 1ull << 62;

class Steering : public DataPlaneTest {
 protected:
  uint32_t AddPin(uint32_t backend, uint32_t move, uint64_t expires_ns = kFarFuture,
                  const std::string& client = "10.0.0.2") {
    unpin_add_pin_args args = {};
    args.key = {.service = kService, .client = htonl(Quad(client))};
    args.pin = {.expires_ns = expires_ns, .reserved_until_ns = 0, .backend = backend, .move = move};
    const absl::StatusOr<unpin_add_pin_args> done = plane_->AddPin(args);
    EXPECT_TRUE(done.ok()) << done.status();
    return done.value_or(args).full;
  }
  void RemovePin(uint32_t move) {
    unpin_add_pin_args args = {};
    args.key = {.service = kService, .client = htonl(Quad("10.0.0.2"))};
    args.pin.move = move;
    EXPECT_TRUE(plane_->RemovePin(args).ok());
  }
};

TEST_F(Steering, MaglevTableDecides) {
  Connection first(*this);
  first.Open();
  UseBackend(1);
  Connection second(*this, {.client_port = 40001, .backend = 1});
  second.Open();
  first.ClientSends({}, UNPIN_FORWARD_C2S);  // a new table moves no established connection
}

TEST_F(Steering, SlotsAreUsedEvenly) {
  std::vector<uint32_t> slots(101);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = kBackend[i % 2];
  Reload({.half_open = 4096});
  ASSERT_TRUE(plane_->PutTable(kService, slots).ok());
  ASSERT_TRUE(
      plane_
          ->PutService({htonl(Quad(kVip)), htons(kVipPort), IPPROTO_TCP, 0},
                       {.id = kService, .flags = UNPIN_SERVICE_SNAT, .slots = 101, .new_per_second = 0})
          .ok());
  int to_first = 0;
  for (uint16_t port = 1; port <= 1000; ++port) {
    Connection connection(*this, {.client_port = port});
    Run(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex());
    const absl::StatusOr<unpin_half_open> half = plane_->HalfOpen(connection.c2s());
    ASSERT_TRUE(half.ok()) << half.status();
    to_first += half->backend == kBackend[0];
  }
  EXPECT_NEAR(to_first, 505, 80);  // 51 of 101 slots; five standard deviations of a fair draw
}

TEST_F(Steering, PinDecidesBeforeMaglevAndIsTakenOnce) {
  ASSERT_EQ(AddPin(kBackend[1], 42), 0u);
  Connection moved(*this, {.backend = 1});
  moved.Open();
  const std::vector<unpin_event> opened = TakeEvents(UNPIN_EVENT_OPENED);
  ASSERT_EQ(opened.size(), 1u);
  EXPECT_EQ(opened[0].move, 42u);
  EXPECT_EQ(opened[0].backend, kBackend[1]);
  Connection next(*this, {.client_port = 40001, .backend = 0});
  next.Open();
}

TEST_F(Steering, PinIsForItsClientOnly) {
  ASSERT_EQ(AddPin(kBackend[1], 42), 0u);
  Connection stranger(*this, {.client = "10.0.0.3", .backend = 0});
  stranger.Open();
}

TEST_F(Steering, LostSynDoesNotUseThePinUp) {
  ASSERT_EQ(AddPin(kBackend[1], 42), 0u);
  Connection connection(*this, {.backend = 1});
  connection.SendSyn();
  connection.ClientSends({.seq = kSyn0, .flags = kSyn}, UNPIN_FORWARD_SYN_RETRY);
  Connection meanwhile(*this, {.client_port = 40001, .backend = 0});
  meanwhile.Open();  // the pin is reserved for the first
  connection.SendSynAck();
  connection.ClientSends({}, UNPIN_FORWARD_OPENED);
}

TEST_F(Steering, ExpiredPinDecidesNothing) {
  ASSERT_EQ(AddPin(kBackend[1], 42, /*expires_ns=*/1), 0u);
  Connection connection(*this, {.backend = 0});
  connection.Open();
}

TEST_F(Steering, PinToABackendThatIsDownFallsBackToMaglev) {
  ASSERT_EQ(AddPin(kBackend[1], 42), 0u);
  SetBackendState(1, UNPIN_BACKEND_DOWN);
  Connection connection(*this, {.backend = 0});
  connection.Open();
  EXPECT_EQ(TakeEvents(UNPIN_EVENT_OPENED).at(0).move, 0u);
}

TEST_F(Steering, RemovedPinDecidesNothing) {
  ASSERT_EQ(AddPin(kBackend[1], 42), 0u);
  RemovePin(42);
  Connection connection(*this, {.backend = 0});
  connection.Open();
}

TEST_F(Steering, PinsOfOneClientAreBounded) {
  for (uint32_t move = 1; move <= UNPIN_PINS_PER_CLIENT; ++move)
    EXPECT_EQ(AddPin(kBackend[1], move), 0u);
  EXPECT_EQ(AddPin(kBackend[1], 99), 1u);
  RemovePin(5);
  EXPECT_EQ(AddPin(kBackend[1], 99), 0u);
}

TEST_F(Steering, PinnedClientsAreBounded) {
  Reload({.pinned_clients = 1});
  EXPECT_EQ(AddPin(kBackend[1], 1), 0u);
  EXPECT_EQ(AddPin(kBackend[1], 2, kFarFuture, "10.0.0.3"), 2u);
}

using NatPorts = DataPlaneTest;

TEST_F(NatPorts, ExhaustionIsRefusedAndCounted) {
  controls_.snat_port_min = 5000;
  controls_.snat_port_max = 5007;
  SetControls();
  std::set<uint16_t> ports;
  for (uint16_t i = 0; i < 8; ++i) {
    Connection connection(*this, {.client_port = static_cast<uint16_t>(40000 + i)});
    connection.Open();
    ports.insert(connection.source_port());
  }
  EXPECT_EQ(ports.size(), 8u);
  Connection late(*this, {.client_port = 50000});
  late.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);

  UseBackend(1);  // the same port may serve towards another backend
  Connection other(*this, {.client_port = 50000, .backend = 1});
  other.Open();
}

TEST_F(NatPorts, CollisionNeverSharesAKey) {
  controls_.snat_port_min = 6000;
  controls_.snat_port_max = 6001;
  SetControls();
  Connection half_open(*this), established(*this, {.client_port = 40001});
  half_open.SendSyn();
  established.Open();
  EXPECT_NE(half_open.source_port(), established.source_port());
  half_open.SendSynAck();
  half_open.ClientSends({}, UNPIN_FORWARD_OPENED);
}

TEST_F(NatPorts, EveryAddressIsUsed) {
  controls_.snat_port_min = controls_.snat_port_max = 7000;
  controls_.snat_count = 2;
  controls_.snat_addresses[1] = htonl(Quad("10.1.255.2"));
  SetControls();
  std::set<uint32_t> sources;
  for (uint16_t port : {1, 2}) {
    Connection connection(*this, {.client_port = port});
    Run(connection.FromClient({.seq = kSyn0, .flags = kSyn}), connection.client_ifindex());
    const absl::StatusOr<unpin_half_open> half = plane_->HalfOpen(connection.c2s());
    ASSERT_TRUE(half.ok()) << half.status();
    sources.insert(ntohl(half->rewrite.source));
  }
  EXPECT_EQ(sources, (std::set<uint32_t>{Quad(kSnatAddress), Quad("10.1.255.2")}));
}

TEST_F(NatPorts, NoAddressNoConnection) {
  controls_.snat_count = 0;
  SetControls();
  Connection connection(*this);
  connection.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
}

// Without SNAT two services that share a backend can meet in one s2c key.
TEST_F(NatPorts, WithoutSnatAnotherConnectionsKeyIsNotTaken) {
  SetServiceFlags(0);
  SetServiceFlags(0, "10.9.0.2");
  Connection first(*this, {.snat = false});
  Connection second(*this, {.vip = "10.9.0.2", .client_isn = 77, .snat = false});
  first.SendSyn();
  second.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
  first.SendSynAck();
  first.ClientSends({}, UNPIN_FORWARD_OPENED);
  second.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
  first.ServerSends({.payload = {1, 2, 3}}, UNPIN_FORWARD_S2C);
}

TEST_F(NatPorts, WithoutSnatAConnectionTakesItsOwnKeyAgain) {
  SetServiceFlags(0);
  Connection connection(*this, {.snat = false});
  connection.SendSyn();
  ASSERT_TRUE(plane_->EraseHalfOpen(connection.c2s()).ok());  // evicted alone
  connection.Open();
}

// Ten seconds are longer than any handshake that goes on: its client has given up, or never was.
class AbandonedHandshake : public DataPlaneTest {
 protected:
  static constexpr uint64_t kTenSeconds = 10'000'000'000;
  void SetUp() override {
    DataPlaneTest::SetUp();
    controls_.snat_port_min = controls_.snat_port_max = 6000;
    SetControls();
    old_.SendSyn();
  }
  void MakeOld(const unpin_flow_key& key) {
    absl::StatusOr<unpin_half_open> half = plane_->HalfOpen(key);
    ASSERT_TRUE(half.ok()) << half.status();
    half->created_ns -= kTenSeconds;
    ASSERT_TRUE(plane_->PutHalfOpen(key, *half).ok());
  }

  Connection old_{*this};
  Connection next_{*this, {.client_port = 40001, .client_isn = 5}};
};

TEST_F(AbandonedHandshake, KeepsItsPortWhileItMayGoOn) {
  next_.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
  old_.SendSynAck();
  old_.ClientSends({}, UNPIN_FORWARD_OPENED);
}

TEST_F(AbandonedHandshake, YieldsItsPortAndSpoilsNothingWhenItComesBack) {
  MakeOld(old_.s2c());
  next_.SendSyn();
  old_.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
  next_.SendSynAck();
  next_.ClientSends({}, UNPIN_FORWARD_OPENED);
  old_.ClientIsDropped({.seq = kSyn0, .flags = kSyn}, UNPIN_DROP_NO_PORT);
  next_.ServerSends({.payload = {1, 2, 3}}, UNPIN_FORWARD_S2C);
  UseBackend(1);
  Connection elsewhere(*this, {.backend = 1});  // the first client, steered anew
  elsewhere.Open();
}

TEST_F(AbandonedHandshake, IsResetIfItsPortHasGoneToAnother) {
  old_.SendSynAck();
  MakeOld(old_.s2c());
  next_.SendSyn();
  const Bytes reset =
      Eth(network_.client.peer, network_.client.gateway) / Ipv4(kVip, "10.0.0.2", {.id = 0}) /
      Tcp(kVipPort, 40000, {.seq = old_.server_first(), .ack = 0, .flags = kRst, .window = 0});
  ExpectRun(old_.FromClient({}), old_.client_ifindex(), UNPIN_REPLY_RESET_UNKNOWN, XDP_TX, reset);
  next_.SendSynAck();
  next_.ClientSends({}, UNPIN_FORWARD_OPENED);
}

TEST_F(AbandonedHandshake, ALateSynAckReachesNobodyElse) {
  ASSERT_TRUE(plane_->EraseHalfOpen(old_.c2s()).ok());  // evicted alone
  controls_.snat_port_min = controls_.snat_port_max = 6001;
  SetControls();
  Connection again(*this);  // the same client end through another port
  again.SendSyn();
  old_.ServerIsDropped({.seq = kSyn0, .flags = kSyn | kAck}, UNPIN_DROP_HALF_OPEN);
  again.SendSynAck();
  again.ClientSends({}, UNPIN_FORWARD_OPENED);
}

}  // namespace
}  // namespace unpin::testkit
