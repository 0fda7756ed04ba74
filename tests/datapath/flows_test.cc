// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/flows.h"

#include <bpf/bpf.h>

#include <set>

#include "tests/datapath/loaded_program.h"

namespace unpin {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class FlowsTest : public LoadedProgram {
 protected:
  void SetUp() override {
    LoadedProgram::SetUp();
    auto flows = KernelFlows::Open(*program_);
    ASSERT_TRUE(flows.ok()) << flows.status();
    flows_ = *std::move(flows);
  }

  std::unique_ptr<KernelFlows> flows_;
  TimePoint now_ = Now();
};

TEST_F(FlowsTest, ListsEveryConnectionOnce) {
  constexpr uint16_t kConnections = 5000;  // more than one batch
  for (uint16_t i = 0; i < kConnections; ++i) Insert(MovablePair(now_, i));
  const auto list = flows_->List(now_, seconds(1));
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), kConnections);
  std::set<uint16_t> ports;
  for (const Connection& connection : *list) {
    ports.insert(connection.key.client.port);
    ASSERT_EQ(connection.refusal, Refusal::kNone);
    ASSERT_EQ(connection.bytes_to_client, 2222u);  // each paired with its own replies
    ASSERT_EQ(connection.snat.port - 1024, connection.key.client.port - 40000);
  }
  EXPECT_EQ(ports.size(), kConnections);
}

TEST_F(FlowsTest, AHalfInsertedConnectionIsNotListed) {
  const FlowPair pair = MovablePair(now_);
  ASSERT_TRUE(FlowTable().Put(pair.key, pair.c2s).ok());
  EXPECT_TRUE(flows_->List(now_, seconds(1))->empty());
}

TEST_F(FlowsTest, FindsOneByItsClient) {
  const FlowPair pair = MovablePair(now_, 7);
  Insert(pair);
  const auto found = flows_->Find(ConnectionKeyOf(pair.key), now_, seconds(6));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->key.client.ToString(), "10.0.0.2:40007");
  EXPECT_EQ(found->snat.ToString(), "10.1.255.1:1031");
  EXPECT_EQ(found->refusal, Refusal::kTooYoung);  // five seconds old

  const absl::Status missing =
      flows_->Find(ConnectionKeyOf(MovablePair(now_, 8).key), now_, {}).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr("10.0.0.2:40008"));
  // Its replies' addresses name a flow, but not a connection.
  EXPECT_TRUE(absl::IsNotFound(flows_->Find(ConnectionKeyOf(pair.c2s.reverse), now_, {}).status()));
}

TEST_F(FlowsTest, ExpiresWhatIsQuietAndNothingElse) {
  FlowPair closed = MovablePair(now_, 1);
  closed.c2s.flags = UNPIN_FLOW_RST;
  FlowPair fresh = MovablePair(now_, 2);
  fresh.s2c.last_seen_ns = NanosecondsOf(now_);
  FlowPair idle = MovablePair(now_, 3);
  for (const FlowPair& pair : {closed, fresh, idle}) Insert(pair);

  const ExpirySettings settings = {
      .established = seconds(4), .closing = seconds(4), .closed = seconds(4)};
  const auto first = flows_->Expire(now_, settings);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->expired, 4u);
  EXPECT_EQ(first->flows, 2u);
  EXPECT_EQ(first->capacity, 2u * options_.connections);
  const auto left = flows_->List(now_, seconds(1));
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().key.client.port, 40002);
  EXPECT_TRUE(absl::IsNotFound(FlowTable().Get(closed.c2s.reverse).status()));
  EXPECT_EQ(flows_->Expire(now_, settings)->expired, 0u);
}

TEST_F(FlowsTest, CountsVerdictsOverAllCpus) {
  const auto before = flows_->VerdictCounts();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->size(), size_t{UNPIN_VERDICT_COUNT} - 1);
  for (const auto& [name, count] : *before) EXPECT_EQ(count, 0u) << name;

  unsigned char arp[64] = {};
  arp[12] = 0x08;
  arp[13] = 0x06;
  LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = arp, .data_size_in = sizeof(arp), .repeat = 10);
  ASSERT_EQ(
      bpf_prog_test_run_opts(bpf_program__fd(program_->data_plane().progs.unpin_ingress), &run), 0);
  EXPECT_EQ(flows_->VerdictCounts()->at("pass_not_ipv4"), 10u);
}

}  // namespace
}  // namespace unpin
