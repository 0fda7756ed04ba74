// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace unpin {
namespace {

TEST(Log, WritesToStderrWhatTheLevelLetsThrough) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(SetUpLog("warn").ok());
  spdlog::info("not of interest");
  spdlog::warn("interface {} is down", "eth0");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("warning interface eth0 is down\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("not of interest")));
}

TEST(Log, RefusesALevelItDoesNotKnow) {
  const absl::Status status = SetUpLog("chatty");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), testing::HasSubstr("chatty"));
}

}  // namespace
}  // namespace unpin
