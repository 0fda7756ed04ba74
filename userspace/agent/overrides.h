// SPDX-License-Identifier: Apache-2.0
// What the API changed over the configuration file, object by object. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "userspace/model/service.h"

namespace unpin {

// An entry without a value is a removal.
struct Overrides {
  std::map<std::string, std::optional<ServiceSpec>> services;
  std::map<std::pair<std::string, Endpoint>, std::optional<BackendSpec>>
      backends;  // by service name
};

Overrides Difference(const Desired& file, const Desired& desired);

// Changes to what the file no longer has are void: a backend of a service that is gone.
Desired Apply(const Overrides& overrides, const Desired& file);

// YAML, versioned; ParseOverrides names `file` in its errors. A file that was cut short is an error, wherever it was cut.
std::string FormatOverrides(const Overrides& overrides);
absl::StatusOr<Overrides> ParseOverrides(const std::string& text, const std::string& file);

}  // namespace unpin
