// SPDX-License-Identifier: Apache-2.0
// The agent's directory in a BPF file system: everything pinned there outlives the agent.
//   DIR/NAME          the maps of bpf/maps.h      DIR/layout        under which contract they were made
//   DIR/links/IFACE   the XDP link of an interface that the agent attached to alone
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "userspace/base/unique_fd.h"

namespace unpin {

// Makes the directory if need be and locks it: one agent at a time (flock on the directory itself, so the lock is keyed
// by exactly what two agents would fight over, and it ends with the process). FailedPrecondition if `directory` is
// not on a BPF file system or another agent holds it. The lock lasts as long as the descriptor.
absl::StatusOr<UniqueFd> OpenBpffsDirectory(const std::string& directory);

// Take away the directory, and its folder of links, as far as they are empty: what an agent made to work in. To be
// called under the lock.
void RemoveEmptyBpffsDirectory(const std::string& directory);
void RemoveEmptyLinksDirectory(const std::string& directory);

// Opens a pinned object; NotFound if there is none.
absl::StatusOr<UniqueFd> OpenPin(const std::string& path);

// Names in `directory`, without "." and ".."; none if it does not exist.
absl::StatusOr<std::vector<std::string>> ListPins(const std::string& directory);

// Removing what is not there is success.
absl::Status RemovePin(const std::string& path);

// Where the link of an interface is pinned. The BPF file system reserves dots in names ("eth0.100"), and no interface
// name may hold a colon: so a dot becomes a colon.
std::string LinkPinPath(const std::string& directory, absl::string_view interface);

// The inverse, of the last component only.
std::string InterfaceOfLinkPin(absl::string_view name);

}  // namespace unpin
