// SPDX-License-Identifier: Apache-2.0
// What must hold for an interface before a data plane may sit on it, and who sits there already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace unpin {

// A frame must fit into one page with XDP's headroom (256), the kernel's own trailer (320), an Ethernet header and two
// VLAN tags: XDP without multi-buffer support takes no more.
inline constexpr int kMaxMtu = 4096 - 256 - 320 - 14 - 8;

struct Interface {
  std::string name;
  int index = 0;
};

// NotFound if there is none of that name in this network namespace.
absl::StatusOr<Interface> FindInterface(const std::string& name);

// FailedPrecondition, with the command to run, if the MTU is above kMaxMtu.
absl::Status CheckMtu(const Interface& interface);

// FailedPrecondition, with the command to run, if the kernel does not forward what arrives there: its routing answers
// bpf_fib_lookup() only for interfaces that forward.
absl::Status CheckForwarding(const Interface& interface);

struct AttachedProgram {
  uint32_t id = 0;
  std::string name;
  bool native = true;  // else generic
};

// The XDP program on an interface; with a dispatcher that is the dispatcher.
absl::StatusOr<std::optional<AttachedProgram>> FindAttached(const Interface& interface);

// False if the program is gone.
bool ProgramUsesMap(uint32_t program_id, uint32_t map_id);

// The kernel's id of a map.
absl::StatusOr<uint32_t> MapId(int map_fd);

}  // namespace unpin
