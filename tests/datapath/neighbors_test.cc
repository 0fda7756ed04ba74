// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/neighbors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>

#include "tests/datapath/sandbox.h"
#include "userspace/datapath/bpf_map.h"
#include "userspace/datapath/program.h"

namespace unpin {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char chunk[512];
  while (fgets(chunk, sizeof(chunk), pipe) != nullptr) text += chunk;
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

IpAddress Address(const char* text) { return *ParseIpAddress(text); }

// This namespace is the gateway: lda (10.77.0.1) faces a host in a namespace of its own (10.77.0.2).
class NeighborsTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeVeth("lda");
    unpin::Run("ip netns add ldhost && ip link set ldap netns ldhost");
    unpin::Run("ip address add 10.77.0.1/24 dev lda");
    unpin::Run(
        "nsenter --net=/run/netns/ldhost sh -ec 'ip address add 10.77.0.2/24 dev ldap;"
        " ip link set ldap address 02:00:00:00:00:02; ip link set ldap up'");
    auto program = Program::Load({.bpffs = directory_, .connections = 1000});
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_unique<Program>(*std::move(program));
    auto controls = Controls::Open(program_->data_plane().maps.controls);
    ASSERT_TRUE(controls.ok()) << controls.status();
    controls_ = *std::move(controls);
    auto neighbors = Neighbors::Open(*controls_);
    ASSERT_TRUE(neighbors.ok()) << neighbors.status();
    neighbors_ = *std::move(neighbors);
  }
  void TearDown() override {
    EXPECT_TRUE(UnpinMaps(directory_).ok());
    RemoveInterface("lda");
    unpin::Run("ip netns del ldhost");
  }

  // The generation the data plane sees once all that was announced so far is taken in. (What `ip` changes is announced
  // before `ip` ends.)
  uint32_t Generation() {
    const absl::Status status = neighbors_->OnReadable();
    EXPECT_TRUE(status.ok()) << status;
    const auto map = BpfMap<uint32_t, unpin_controls>::Open(program_->data_plane().maps.controls);
    return map->Get(0)->route_generation;
  }

  // Takes announcements in until the kernel knows the neighbour's link-layer address.
  void AwaitResolved(const std::string& address) {
    while (Output("ip neigh show to " + address).find("lladdr 02:00:00:00:00:02") ==
           std::string::npos) {
      pollfd announced = {.fd = neighbors_->fd(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(poll(&announced, 1, 5000), 1) << address << " is never resolved";
      ASSERT_TRUE(neighbors_->OnReadable().ok());
    }
  }

  std::string directory_ = FreshPinDirectory();
  std::unique_ptr<Program> program_;
  std::unique_ptr<Controls> controls_;
  std::unique_ptr<Neighbors> neighbors_;
};

TEST_F(NeighborsTest, ABackendNearbyIsResolvedAndThatIsAnnounced) {
  const uint32_t before = Generation();
  ASSERT_TRUE(neighbors_->SetBackends({Address("10.77.0.2")}).ok());
  AwaitResolved("10.77.0.2");
  EXPECT_GT(Generation(), before);
}

TEST_F(NeighborsTest, ABackendFarAwayHasItsGatewayResolved) {
  unpin::Run("ip route add 10.88.0.0/16 via 10.77.0.2");
  ASSERT_TRUE(neighbors_->SetBackends({Address("10.88.1.9")}).ok());
  AwaitResolved("10.77.0.2");
}

TEST_F(NeighborsTest, ABackendWithoutARouteIsNamedAndStopsNoOther) {
  const absl::Status status =
      neighbors_->SetBackends({Address("10.123.0.1"), Address("10.77.0.2"), Address("10.124.0.1")});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("10.123.0.1"), HasSubstr("unreachable")));
  AwaitResolved("10.77.0.2");
  unpin::Run("ip route add 10.123.0.0/16 dev lda && ip route add 10.124.0.0/16 dev lda");
  EXPECT_TRUE(neighbors_->Probe().ok()) << "old answers must not be taken for new ones";
}

TEST_F(NeighborsTest, OnlyAnotherLinkLayerAddressIsAChange) {
  unpin::Run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev lda nud reachable");
  const uint32_t first = Generation();
  for (const char* state : {"stale", "delay", "probe", "reachable", "stale"}) {
    unpin::Run(std::string("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev lda nud ") +
               state);
    EXPECT_EQ(Generation(), first) << state;
  }
  unpin::Run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:99 dev lda nud reachable");
  EXPECT_GT(Generation(), first);
}

TEST_F(NeighborsTest, ANeighbourThatComesBackElsewhereIsAChange) {
  unpin::Run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev lda nud reachable");
  const uint32_t first = Generation();
  unpin::Run("ip neigh del 10.77.0.9 dev lda");
  unpin::Run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev lda nud reachable");
  EXPECT_EQ(Generation(), first) << "it is where it was";
  unpin::Run("ip neigh del 10.77.0.9 dev lda");
  unpin::Run("ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:77 dev lda nud reachable");
  EXPECT_GT(Generation(), first);
}

TEST_F(NeighborsTest, RoutesAndLinksAreWatched) {
  uint32_t before = Generation();
  EXPECT_EQ(Generation(), before) << "nothing has changed";
  unpin::Run("ip route add 10.99.0.0/16 via 10.77.0.2");
  EXPECT_GT(Generation(), before);
  before = Generation();
  unpin::Run("ip route del 10.99.0.0/16");
  EXPECT_GT(Generation(), before);
  before = Generation();
  unpin::Run("ip link set lda down");
  EXPECT_GT(Generation(), before);
}

TEST_F(NeighborsTest, ProbesOnBehalfOfPacketsAreKeptApart) {
  ASSERT_TRUE(neighbors_->SetBackends({Address("10.77.0.2")}).ok());
  const TimePoint now = Now();
  EXPECT_TRUE(neighbors_->OnMissing(now).ok());
  unpin::Run("ip link set lda down");  // the route goes with it: a probe would fail
  EXPECT_TRUE(neighbors_->OnMissing(now + std::chrono::milliseconds(99)).ok()) << "too soon";
  EXPECT_FALSE(neighbors_->OnMissing(now + std::chrono::milliseconds(100)).ok());
}

}  // namespace
}  // namespace unpin
