// SPDX-License-Identifier: Apache-2.0
// A move book with one move brought to any stage of its life.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "userspace/rebalance/move_book.h"

namespace unpin {

constexpr TimePoint kStart{std::chrono::seconds(1000)};
constexpr BackendId kFrom = 3;
constexpr BackendId kTo = 5;
constexpr ServiceId kService = 2;

struct MoveBookFixture : testing::Test {
  static ConnectionKey Key(uint16_t port) {
    return {.client = {{0x0a000002}, port}, .vip = {{0x0a090001}, 50051}};
  }

  MoveBook::Order OrderFor(uint16_t port) const {
    return {.connection = Key(port), .service = kService, .from = kFrom, .to = kTo};
  }

  MoveId Start(uint16_t port = 40000) {
    const auto id = book.Start(OrderFor(port), now);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }

  MoveId StartAndPin(uint16_t port = 40000) {
    const MoveId id = Start(port);
    book.OnPinned(id, absl::OkStatus(), now);
    return id;
  }

  MoveId StartAndArm(uint16_t port = 40000) {
    const MoveId id = StartAndPin(port);
    book.OnArmed(id, Splicer::Armed{}, now);
    return id;
  }

  MoveId StartAndCommit(uint16_t port = 40000) {
    const MoveId id = StartAndPin(port);
    book.OnArmed(id, Splicer::Armed{.committed = true, .boundary = 7}, now);
    book.OnEmitted(id, absl::OkStatus(), now);
    return id;
  }

  MoveId StartAndAcknowledge(uint16_t port = 40000) {
    const MoveId id = StartAndCommit(port);
    Tell(FlowEvent::Type::kAcknowledged, port);
    return id;
  }

  void Tell(FlowEvent::Type type, uint16_t port = 40000, MoveId move = 0,
            BackendId backend = kFrom) {
    book.OnEvent({.type = type,
                  .time = now,
                  .key = Key(port),
                  .service = kService,
                  .backend = backend,
                  .move = move},
                 now);
  }

  void After(Duration duration) {
    now += duration;
    book.OnDue(now);
  }

  std::vector<MoveAction::Kind> Actions() {
    std::vector<MoveAction::Kind> kinds;
    for (const MoveAction& action : book.Take().actions) kinds.push_back(action.kind);
    return kinds;
  }

  MoveState State(MoveId id) { return book.Find(id)->state; }
  std::string Detail(MoveId id) { return book.Find(id)->detail; }

  MoveSettings settings{.min_age = std::chrono::seconds(1),
                        .trim_after = std::chrono::milliseconds(20),
                        .arm_timeout = std::chrono::seconds(2),
                        .resend_interval = std::chrono::milliseconds(20),
                        .ack_timeout = std::chrono::seconds(30),
                        .reconnect_timeout = std::chrono::seconds(40)};
  MoveBook book{settings, 1};
  TimePoint now = kStart;
};

}  // namespace unpin
