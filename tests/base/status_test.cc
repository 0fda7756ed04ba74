// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace unpin {
namespace {

TEST(ErrnoStatus, SaysWhatWasTriedAndWhatTheSystemSaid) {
  const absl::Status status = ErrnoStatus(ENOENT, "open /nowhere");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "open /nowhere: No such file or directory");
}

TEST(ErrnoStatus, CodesAreChosenForTheCaller) {
  EXPECT_TRUE(absl::IsPermissionDenied(ErrnoStatus(EPERM, "x")));
  EXPECT_TRUE(absl::IsAlreadyExists(ErrnoStatus(EEXIST, "x")));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrnoStatus(EINVAL, "x")));
  for (const int error : {E2BIG, ENOSPC, ENOMEM, ENOBUFS}) {
    EXPECT_TRUE(absl::IsResourceExhausted(ErrnoStatus(error, "x"))) << error;
  }
}

TEST(Annotate, PutsTheNounInFrontAndKeepsTheCode) {
  const absl::Status status = Annotate(absl::NotFoundError("gone"), "link eth0");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "link eth0: gone");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "link eth0").ok());
}

}  // namespace
}  // namespace unpin
