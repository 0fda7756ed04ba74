// SPDX-License-Identifier: Apache-2.0
// Who owns the path of a unix socket.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace unpin {

// Makes `path` free to bind: creates its folder if only that is missing, removes a socket nobody
// listens on. FailedPrecondition if somebody listens there or `path` is no socket; InvalidArgument
// if it is too long for one.
absl::Status ClaimSocketPath(const std::string& path);

}  // namespace unpin
