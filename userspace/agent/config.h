// SPDX-License-Identifier: Apache-2.0
// The configuration file (YAML). It is taken whole or refused whole, with file, line and field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "userspace/model/service.h"

namespace unpin {

struct Settings {
  std::vector<std::string> interfaces;
  SnatSettings snat;
  bool reset_unknown = true;      // mid-stream TCP of no known connection: RST, else drop
  uint32_t connections = 131072;  // room in the flow table; fixed when the table is made
  ExpirySettings expiry;
  MoveSettings moves;
};

struct Config {
  Settings settings;
  Desired desired;
};

// InvalidArgument: "FILE:LINE:COLUMN: FIELD: what is wrong". Syntax and ranges only; ValidateDesired() judges the whole.
absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file);

// NotFound or PermissionDenied if the file cannot be read.
absl::StatusOr<Config> LoadConfig(const std::string& file);

}  // namespace unpin
