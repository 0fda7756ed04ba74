// SPDX-License-Identifier: Apache-2.0
// One interface, one BPF link, pinned: the way without a dispatcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "userspace/datapath/attach.h"

namespace unpin {

// Puts the program into the link that an earlier agent pinned for the interface; nullopt if there is none. A pin left
// by an interface that has gone since is removed.
absl::StatusOr<std::optional<Attachment>> AdoptAlone(const Program& program,
                                                     const Interface& interface);

// Attaches natively, else generically with a warning that says why, and pins the link.
absl::StatusOr<Attachment> AttachAlone(const Program& program, const Interface& interface,
                                       std::vector<std::string>& warnings);

// Takes the pinned link off its interface and removes the pin; no pin is success.
absl::Status DetachAlone(const std::string& bpffs, const std::string& interface);

// FailedPrecondition if the interface is another one of the same name by now, or runs another program.
absl::Status CheckStillAttached(const Attachment& attachment);

std::string GenericWarning(const Interface& interface, absl::string_view reason);

}  // namespace unpin
