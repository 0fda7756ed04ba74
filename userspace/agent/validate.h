// SPDX-License-Identifier: Apache-2.0
// Whether a desired state makes sense as a whole. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "userspace/model/service.h"

namespace unpin {

inline constexpr char kServiceNames[] = "1 to 63 of a-z, 0-9 and -";
bool IsServiceName(const std::string& name);

struct DesiredLimits {
  size_t services = 1024;
  size_t backends = 16383;    // of all services; id 0 is nobody's
  size_t snat_addresses = 0;  // 0: a service with snat cannot be served
};

// InvalidArgument names the field; AlreadyExists, ResourceExhausted, FailedPrecondition say what is in the way.
absl::Status ValidateDesired(const Desired& desired, const DesiredLimits& limits);

}  // namespace unpin
