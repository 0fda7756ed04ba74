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

// What one probe found, or what so many on end have established.
enum class Health {
  kAwaited,  // never seen up since it was added
  kUp,
  kUnwell,    // answers, and says that it does not serve: what it has begun, it will end
  kRefusing,  // the host is there, nobody listens: its kernel resets what is left by itself
  kSilent,    // no answer: nobody will ever tell its clients
};

struct ProbeResult {
  BackendId backend = 0;
  Health found = Health::kUp;  // never kAwaited
  bool decisive = false;       // needs no second opinion
  std::string detail;  // unless up: "connection refused", "no answer within 500ms", "NOT_SERVING"

  bool ok() const { return found == Health::kUp; }
};

}  // namespace unpin
