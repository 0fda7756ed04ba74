// SPDX-License-Identifier: Apache-2.0
// Packets through the real data plane, out of order and with losses, and what the agent makes of its two rings.
#include "userspace/datapath/recovery.h"

#include <bpf/bpf.h>
#include <poll.h>

#include <algorithm>

#include "tests/datapath/loaded_program.h"
#include "userspace/datapath/controls.h"
#include "userspace/datapath/events.h"
#include "userspace/datapath/tables.h"

namespace unpin {
namespace {

using std::chrono::seconds;

constexpr uint32_t kPingSize = 17;

bool IsReadable(int fd) {
  pollfd descriptor = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) == 1;
}

class RecoveryTest : public LoadedProgram {
 protected:
  void SetUp() override {
    LoadedProgram::SetUp();
    auto recovery = Recovery::Open(*program_);
    ASSERT_TRUE(recovery.ok()) << recovery.status();
    recovery_ = *std::move(recovery);
    Insert(pair_);
    auto tables = KernelTables::Open(*program_);
    ASSERT_TRUE(tables.ok()) << tables.status();
    const Endpoint backend = {.address = {0x0a010102}, .port = 50051};
    ASSERT_TRUE((*tables)->PutBackend({.id = 1, .service = 1, .endpoint = backend}).ok());
  }

  // The server sends an HTTP/2 PING, 17 bytes, at `sequence`.
  void ServerSendsPing(uint32_t sequence) {
    std::vector<uint8_t> frame(14 + 20 + 20 + kPingSize);
    const auto put = [&](size_t offset, std::initializer_list<uint32_t> bytes) {
      std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<long>(offset));
    };
    put(12, {0x08, 0x00, 0x45, 0, 0, 20 + 20 + kPingSize, 0, 0, 0x40, 0, 64, 6, 0, 0});
    put(26, {10, 1, 1, 2, 10, 1, 255, 1});  // backend to SNAT address
    put(34, {0xc3, 0x83, 0x04, 0x00});      // 50051 to 1024
    put(38, {sequence >> 24, sequence >> 16 & 255, sequence >> 8 & 255, sequence & 255});
    put(46, {0x50, 0x18, 1, 0});
    put(54, {0, 0, 8, 6, 0, 0, 0, 0, 0});
    std::vector<uint8_t> out(frame.size() + 256);
    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame.data(), .data_out = out.data(),
                .data_size_in = static_cast<uint32_t>(frame.size()),
                .data_size_out = static_cast<uint32_t>(out.size()));
    ASSERT_EQ(
        bpf_prog_test_run_opts(bpf_program__fd(program_->data_plane().progs.unpin_ingress), &run),
        0);
  }

  unpin_follower Follower() const { return Read(pair_).s2c.follower; }

  FlowPair pair_ = MovablePair(Now());
  std::unique_ptr<Recovery> recovery_;
};

TEST_F(RecoveryTest, PacketsInOrderNeedNoHelp) {
  ServerSendsPing(1000);
  ServerSendsPing(1017);
  EXPECT_EQ(Follower().next_header, 1034u);
  EXPECT_EQ(Follower().epoch, 0u);
  EXPECT_FALSE(IsReadable(recovery_->fd()));
}

TEST_F(RecoveryTest, AnOvertakenPacketIsFollowedExactly) {
  ServerSendsPing(1017);
  ASSERT_NE(Follower().epoch, 0u);
  ASSERT_TRUE(IsReadable(recovery_->fd()));
  ASSERT_TRUE(recovery_->OnReadable(Now()).ok());
  EXPECT_NE(Follower().epoch, 0u);  // not yet

  ServerSendsPing(1000);
  ASSERT_TRUE(recovery_->OnReadable(Now()).ok());
  EXPECT_EQ(Follower().epoch, 0u);
  EXPECT_EQ(Follower().next_header, 1034u);
  EXPECT_EQ(recovery_->counts().recovered, 1u);
  EXPECT_EQ(recovery_->memory_bytes(), 0u);

  ServerSendsPing(1034);  // in step again, by itself
  EXPECT_EQ(Follower().next_header, 1051u);
  EXPECT_FALSE(IsReadable(recovery_->fd()));
}

TEST_F(RecoveryTest, PacketsThatComeMeanwhileMakeItTryAgain) {
  for (const uint32_t sequence : {1017, 1000, 1051, 1034}) ServerSendsPing(sequence);
  ASSERT_TRUE(recovery_->OnReadable(Now()).ok());
  EXPECT_EQ(Follower().epoch, 0u);
  EXPECT_EQ(Follower().next_header, 1068u);
  EXPECT_EQ(recovery_->counts().recovered, 1u);
  EXPECT_GE(recovery_->counts().retried, 1u);  // the table already knew of bytes up to 1068
}

TEST_F(RecoveryTest, WhatNeverComesIsGivenUp) {
  const TimePoint start = Now();
  ServerSendsPing(1017);
  ASSERT_TRUE(recovery_->OnReadable(start).ok());
  ASSERT_TRUE(recovery_->Tick(start + seconds(9)).ok());
  EXPECT_FALSE(Follower().flags & UNPIN_FOLLOWER_LOST);
  ASSERT_TRUE(recovery_->Tick(start + seconds(11)).ok());
  EXPECT_TRUE(Follower().flags & UNPIN_FOLLOWER_LOST);
  EXPECT_EQ(recovery_->counts().given_up, 1u);
}

TEST_F(RecoveryTest, AConnectionThatEndedMeanwhileIsForgotten) {
  ServerSendsPing(1017);
  ServerSendsPing(1000);
  ASSERT_TRUE(FlowTable().Erase(pair_.c2s.reverse).ok());
  ASSERT_TRUE(recovery_->OnReadable(Now()).ok());
  EXPECT_EQ(recovery_->counts().stale, 1u);
}

TEST_F(RecoveryTest, AnArmedConnectionCommitsWhenItIsBackInStep) {
  const auto controls = Controls::Open(program_->data_plane().maps.controls);
  ASSERT_TRUE((*controls)->Apply({}).ok());
  std::vector<FlowEvent> events;
  const auto ring = OpenEvents(*program_, [&](const FlowEvent& event) { events.push_back(event); });
  ASSERT_TRUE(ring.ok()) << ring.status();
  pair_.s2c.splice.state = UNPIN_SPLICE_ARMED;
  Insert(pair_);

  ServerSendsPing(1017);
  ServerSendsPing(1000);
  EXPECT_FALSE(IsReadable((*ring)->fd()));
  ASSERT_TRUE(recovery_->OnReadable(Now()).ok());
  ASSERT_TRUE(IsReadable((*ring)->fd()));
  ASSERT_TRUE((*ring)->Consume().ok());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, FlowEvent::Type::kCommitted);
  EXPECT_EQ(events[0].key, ConnectionKeyOf(pair_.key));
  EXPECT_EQ(events[0].boundary, 1034u);
  EXPECT_EQ(events[0].service, 3u);
  EXPECT_EQ(events[0].backend, 17u);
  EXPECT_LE(events[0].time, Now());
  EXPECT_GT(events[0].time, Now() - seconds(60));
}

}  // namespace
}  // namespace unpin
