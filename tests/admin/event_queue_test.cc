// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace unpin {
namespace {

Event Named(const std::string& type) {
  return Event{.time = TimePoint(), .type = type, .service = "", .message = "", .move = {}};
}

TEST(EventQueue, HandsOutInOrder) {
  EventQueue queue(false);
  queue.Push(Named("a"));
  queue.Push(Named("b"));
  EXPECT_EQ(queue.Pop(Duration::zero())->type, "a");
  EXPECT_EQ(queue.Pop(Duration::zero())->type, "b");
  EXPECT_FALSE(queue.Pop(Duration::zero()).has_value());
}

TEST(EventQueue, WakesAReaderThatWaits) {
  EventQueue queue(false);
  std::thread writer([&] { queue.Push(Named("a")); });
  EXPECT_TRUE(queue.Pop(std::chrono::minutes(1)).has_value());
  writer.join();
}

TEST(EventQueue, SlowReaderLosesTheOldestAndIsTold) {
  EventQueue queue(false, 2);
  for (const char* type : {"a", "b", "c", "d"}) queue.Push(Named(type));
  const auto notice = queue.Pop(Duration::zero());
  EXPECT_EQ(notice->type, "events-dropped");
  EXPECT_THAT(notice->message, testing::HasSubstr("2 events"));
  EXPECT_EQ(queue.Pop(Duration::zero())->type, "c");
  EXPECT_EQ(queue.Pop(Duration::zero())->type, "d");
  EXPECT_FALSE(queue.Pop(Duration::zero()).has_value());
}

}  // namespace
}  // namespace unpin
