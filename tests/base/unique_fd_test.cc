// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/unique_fd.h"

#include <fcntl.h>

#include <gtest/gtest.h>

namespace unpin {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesWhatItOwnsOnceOnly) {
  const int raw = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  {
    UniqueFd first(raw);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(second.get(), raw);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFd, AssignmentClosesTheOldOne) {
  UniqueFd holder(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int old = holder.get();
  holder = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(IsOpen(old));
  EXPECT_TRUE(IsOpen(holder.get()));
}

TEST(UniqueFd, ReleaseHandsOwnershipOver) {
  int raw = -1;
  {
    UniqueFd holder(open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = holder.Release();
  }
  EXPECT_TRUE(IsOpen(raw));
  close(raw);
}

}  // namespace
}  // namespace unpin
