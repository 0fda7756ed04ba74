// SPDX-License-Identifier: Apache-2.0
// The subcommands of unpin-gen, and what their command lines have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "userspace/base/clock.h"

namespace unpin::gen {

// Each adds itself to `app` and, when chosen, leaves in `result` what became of it.
void AddServeCommand(CLI::App& app, absl::Status& result);
void AddGrpcCommand(CLI::App& app, absl::Status& result);
void AddSetCommand(CLI::App& app, absl::Status& result);

// Options such as 250ms, 5s or 2m; negative ones are refused.
CLI::Option* AddDuration(CLI::App* command, const std::string& name, Duration& value,
                         const std::string& help);
CLI::Option* AddDuration(CLI::App* command, const std::string& name, std::optional<Duration>& value,
                         const std::string& help);

}  // namespace unpin::gen
