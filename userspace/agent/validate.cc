// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/validate.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace unpin {
namespace {

absl::Status ValidateBackend(const std::string& service, const BackendSpec& backend) {
  const std::string where =
      absl::StrCat("service ", service, ", backend ", backend.endpoint.ToString());
  if (backend.endpoint.port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": port: 0 is not in 1..65535"));
  }
  if (backend.endpoint.address.bits == 0) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": address: 0.0.0.0 is not a host"));
  }
  if (backend.weight > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": weight: ", backend.weight, " is not in 0..65535"));
  }
  return absl::OkStatus();
}

absl::Status ValidateService(const ServiceSpec& spec, const DesiredLimits& limits) {
  if (!IsServiceName(spec.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("service name: \"", spec.name, "\" is not ", kServiceNames));
  }
  if (spec.vip.port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("service ", spec.name, ": vip: port 0 is not in 1..65535"));
  }
  if (spec.vip.address.bits == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("service ", spec.name, ": vip: 0.0.0.0 is not a host"));
  }
  if (spec.snat && limits.snat_addresses == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "service ", spec.name,
        ": snat: the gateway has no address for it (snat.addresses in the configuration file)"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsServiceName(const std::string& name) {
  const auto is_valid = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  };
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, is_valid);
}

absl::Status ValidateDesired(const Desired& desired, const DesiredLimits& limits) {
  if (desired.size() > limits.services) {
    return absl::ResourceExhaustedError(
        absl::StrCat("services: ", desired.size(), " are more than ", limits.services));
  }
  std::map<Endpoint, std::string> vips;
  size_t backends = 0;
  for (const auto& [name, service] : desired) {
    if (absl::Status status = ValidateService(service.spec, limits); !status.ok()) return status;
    const auto [other, inserted] = vips.emplace(service.spec.vip, name);
    if (!inserted) {
      return absl::AlreadyExistsError(absl::StrCat("service ", name,
                                                   ": vip: ", service.spec.vip.ToString(),
                                                   " is that of service ", other->second));
    }
    backends += service.backends.size();
  }
  if (backends > limits.backends) {
    return absl::ResourceExhaustedError(
        absl::StrCat("backends: ", backends, " are more than ", limits.backends));
  }
  for (const auto& [name, service] : desired) {
    for (const auto& [endpoint, backend] : service.backends) {
      if (absl::Status status = ValidateBackend(name, backend); !status.ok()) return status;
      if (const auto vip = vips.find(endpoint); vip != vips.end()) {
        return absl::InvalidArgumentError(absl::StrCat("service ", name, ", backend ",
                                                       endpoint.ToString(),
                                                       ": is the VIP of service ", vip->second));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace unpin
