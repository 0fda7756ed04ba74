// SPDX-License-Identifier: Apache-2.0
// The one place where errno becomes an absl::Status.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace unpin {

// "WHAT: what the system said", with the code that fits `error` (an errno value, > 0). A full BPF
// map (E2BIG) is ResourceExhausted, like every other lack of room.
absl::Status ErrnoStatus(int error, absl::string_view what);

// `status` with "WHAT: " before its message and the code kept; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view what);

}  // namespace unpin
