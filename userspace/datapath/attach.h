// SPDX-License-Identifier: Apache-2.0
// The data plane on its interfaces. Attachments outlive the agent; the next one puts its own program in their place
// without losing a packet.
//
// Two ways, chosen by what the kernel can do and what is there already:
//   dispatcher  beside other XDP programs (libxdp). Replaced by adding the new program, then removing the old one:
//               in between both run, and the second sees only what the first one passes.
//   alone       one BPF link, pinned under DIR/links. Replaced atomically.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/base/unique_fd.h"
#include "userspace/datapath/interface.h"
#include "userspace/datapath/program.h"

namespace unpin {

struct Attachment {
  enum class Way { kDispatcher, kAlone };
  Interface interface;
  Way way = Way::kAlone;
  bool native = true;    // else generic: slow, for want of support by the driver
  bool adopted = false;  // an earlier agent's, with its program replaced
  uint32_t program_id = 0;
  UniqueFd link;  // kAlone
};

class Attachments {
 public:
  // Attaches to every interface, or on failure to none but those that an earlier agent had: every interface is looked at
  // before the first is touched. Interfaces that an earlier agent had and this one is not given are let go.
  // FailedPrecondition names the interface and what to do: forwarding off, MTU too large, a foreign program.
  static absl::StatusOr<Attachments> Attach(const Program& program,
                                            const std::vector<std::string>& interfaces);

  const std::vector<Attachment>& list() const { return list_; }

  // What Attach() did that an operator should know.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // What has gone wrong since the last call: an MTU raised too far, forwarding switched off, the program replaced or
  // the interface gone. Each is told once, and again after it was well in between.
  std::vector<std::string> CheckAgain();

  // Takes the data plane off every interface. Does all it can and returns the first error.
  absl::Status Detach();

 private:
  explicit Attachments(std::string bpffs) : bpffs_(std::move(bpffs)) {}

  void RollBack();

  std::string bpffs_;
  std::vector<Attachment> list_;
  std::vector<std::string> warnings_;
  std::vector<std::string> known_troubles_;
};

// Everything an agent left, of whatever version: takes the data plane off all interfaces and removes all pins. For
// `unpind --detach`. FailedPrecondition if an agent runs.
absl::Status DetachEverything(const std::string& bpffs);

}  // namespace unpin
