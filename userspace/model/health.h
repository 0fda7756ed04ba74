// SPDX-License-Identifier: Apache-2.0
// What is probed, and what came of it. Plain values.
#pragma once

#include <string>

#include "userspace/model/service.h"

namespace unpin {

struct HealthTarget {
  BackendId backend = 0;
  Endpoint endpoint;
  HealthSettings settings;
  friend bool operator==(const HealthTarget&, const HealthTarget&) = default;
};

struct ProbeResult {
  BackendId backend = 0;
  bool ok = false;
  bool decisive = false;  // a failure that needs no second opinion: refused, or the server itself says so
  std::string detail;     // of a failure: "connection refused", "no answer within 500ms", "NOT_SERVING"
};

}  // namespace unpin
