// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/status.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace unpin {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case E2BIG:
    case ENOBUFS:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::ErrnoToStatusCode(error);
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view what) {
  return absl::Status(CodeOf(error),
                      absl::StrCat(what, ": ", std::generic_category().message(error)));
}

absl::Status Annotate(const absl::Status& status, absl::string_view what) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace unpin
