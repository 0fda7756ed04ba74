// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/dispatcher.h"

#include <bpf/libbpf.h>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/datapath/kernel_log.h"

namespace unpin {
namespace {

struct CloseMultiprog {
  void operator()(xdp_multiprog* programs) const { xdp_multiprog__close(programs); }
};
using Multiprog = std::unique_ptr<xdp_multiprog, CloseMultiprog>;

Multiprog ProgramsOn(const Interface& interface) {
  xdp_multiprog* programs = xdp_multiprog__get_from_ifindex(interface.index);
  return Multiprog(libxdp_get_error(programs) == 0 ? programs : nullptr);
}

bool HasDispatcher(const Interface& interface) {
  const Multiprog programs = ProgramsOn(interface);
  return programs && !xdp_multiprog__is_legacy(programs.get());
}

xdp_attach_mode Mode(bool native) { return native ? XDP_MODE_NATIVE : XDP_MODE_SKB; }

}  // namespace

bool KernelTakesDispatchers() {
  const KernelLog log;
  return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_EXT, nullptr) == 1;
}

std::optional<std::vector<uint32_t>> DispatchedPrograms(const Interface& interface) {
  const KernelLog log;
  const Multiprog programs = ProgramsOn(interface);
  if (!programs || xdp_multiprog__is_legacy(programs.get())) return std::nullopt;
  std::vector<uint32_t> ids;
  const xdp_program* program = nullptr;
  while ((program = xdp_multiprog__next_prog(program, programs.get())) != nullptr) {
    ids.push_back(xdp_program__id(program));
  }
  return ids;
}

absl::Status RemoveDispatched(const Interface& interface, uint32_t program_id) {
  const KernelLog log;
  const std::string what = absl::StrCat("interface ", interface.name, ": take program ", program_id,
                                        " out of the dispatcher");
  xdp_program* program = xdp_program__from_id(program_id);
  if (const long error = libxdp_get_error(program); error != 0)
    return ErrnoStatus(static_cast<int>(-error), what);
  const int error = xdp_program__detach(program, interface.index, XDP_MODE_UNSPEC, 0);
  xdp_program__close(program);
  if (error != 0) return ErrnoStatus(-error, absl::StrCat(what, log.Tail(), "\n  kernel's answer"));
  return absl::OkStatus();
}

absl::StatusOr<Extension> Extension::Open(const Program& program) {
  const KernelLog log;
  absl::StatusOr<SkeletonPtr<unpin_skel>> object = program.OpenCopy();
  if (!object.ok()) return object.status();
  xdp_program* extension = xdp_program__from_bpf_obj((*object)->obj, "xdp");
  if (const long error = libxdp_get_error(extension); error != 0) {
    return ErrnoStatus(static_cast<int>(-error),
                       absl::StrCat("open the data plane for a dispatcher", log.Tail()));
  }
  return Extension(*std::move(object), extension);
}

absl::Status Extension::Attach(const Interface& interface, bool native) {
  const KernelLog log;
  const std::string what =
      absl::StrCat("interface ", interface.name, ": attach through a dispatcher, ",
                   native ? "native" : "generic");
  const int error = xdp_program__attach(program_.get(), interface.index, Mode(native), 0);
  if (error != 0) return ErrnoStatus(-error, absl::StrCat(what, log.Tail(), "\n  kernel's answer"));
  if (HasDispatcher(interface)) return absl::OkStatus();
  // Unasked, libxdp falls back to attaching the program alone, which no later agent could replace without a gap.
  xdp_program__detach(program_.get(), interface.index, XDP_MODE_UNSPEC, 0);
  return absl::UnavailableError(
      absl::StrCat(what, ": this kernel refuses dispatchers", log.Tail()));
}

}  // namespace unpin
