// SPDX-License-Identifier: Apache-2.0
// Living beside other XDP programs: libxdp's dispatcher, which calls each program in turn until one does not pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <xdp/libxdp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/datapath/interface.h"
#include "userspace/datapath/program.h"

namespace unpin {

// Whether this kernel lets a program extend another one (BPF_PROG_TYPE_EXT), which dispatchers are made of.
bool KernelTakesDispatchers();

// The ids of the programs behind an interface's dispatcher; nullopt if there is no dispatcher on it.
std::optional<std::vector<uint32_t>> DispatchedPrograms(const Interface& interface);

// Takes one program out of an interface's dispatcher, or the dispatcher away if it was the last.
absl::Status RemoveDispatched(const Interface& interface, uint32_t program_id);

// The data plane as an extension of dispatchers.
class Extension {
 public:
  // Loads nothing yet: libxdp does so at the first Attach().
  static absl::StatusOr<Extension> Open(const Program& program);

  // Adds the data plane to the interface's dispatcher, which is made if need be. Programs already there stay, and no
  // packet is lost. Nothing is attached on failure.
  absl::Status Attach(const Interface& interface, bool native);

  uint32_t id() const { return xdp_program__id(program_.get()); }  // 0 before the first Attach()

 private:
  struct Close {
    void operator()(xdp_program* program) const { xdp_program__close(program); }
  };

  Extension(SkeletonPtr<unpin_skel> object, xdp_program* program)
      : object_(std::move(object)), program_(program) {}

  SkeletonPtr<unpin_skel> object_;
  std::unique_ptr<xdp_program, Close> program_;
};

}  // namespace unpin
