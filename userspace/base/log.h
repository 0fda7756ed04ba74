// SPDX-License-Identifier: Apache-2.0
// The agent's log: lines on stderr, through spdlog. Only main, the controller's loop and the CLI
// log.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace unpin {

// Sends spdlog's default logger to stderr, flushed line by line. `level` is trace, debug, info,
// warn, error or off; InvalidArgument otherwise. Call once, before any thread logs.
absl::Status SetUpLog(absl::string_view level);

}  // namespace unpin
