// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/controls.h"

#include <arpa/inet.h>

#include "absl/strings/str_cat.h"

namespace unpin {
namespace {

absl::Status CheckSnat(const SnatSettings& snat) {
  if (snat.addresses.size() > UNPIN_MAX_SNAT_ADDRESSES) {
    return absl::InvalidArgumentError(absl::StrCat("snat: ", snat.addresses.size(),
                                                   " addresses, but at most ",
                                                   UNPIN_MAX_SNAT_ADDRESSES, " are possible"));
  }
  if (snat.port_min == 0 || snat.port_min > snat.port_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "snat: ports ", snat.port_min, "-", snat.port_max, " are not a range within 1-65535"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Controls>> Controls::Open(const bpf_map* map) {
  auto typed = BpfMap<uint32_t, unpin_controls>::Open(map);
  if (!typed.ok()) return typed.status();
  const auto current = typed->Get(0);
  if (!current.ok()) return current.status();
  return std::unique_ptr<Controls>(new Controls(*typed, *current));
}

absl::Status Controls::Apply(const ControlSettings& settings) {
  if (absl::Status status = CheckSnat(settings.snat); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  unpin_controls next = {};
  next.route_generation = current_.route_generation;
  next.event_mask = settings.event_mask;
  next.unknown_tcp = settings.reset_unknown ? UNPIN_UNKNOWN_RESET : UNPIN_UNKNOWN_DROP;
  next.snat_port_min = settings.snat.port_min;
  next.snat_port_max = settings.snat.port_max;
  for (const IpAddress address : settings.snat.addresses) {
    next.snat_addresses[next.snat_count++] = htonl(address.bits);
  }
  return Write(next);
}

absl::Status Controls::RaiseRouteGeneration() {
  const std::lock_guard lock(mutex_);
  unpin_controls next = current_;
  ++next.route_generation;
  return Write(next);
}

absl::Status Controls::Write(const unpin_controls& next) {
  absl::Status status = map_.Put(0, next);
  if (status.ok()) current_ = next;
  return status;
}

}  // namespace unpin
