// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/attach_alone.h"

#include <linux/if_link.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/datapath/bpffs.h"
#include "userspace/datapath/dispatcher.h"
#include "userspace/datapath/kernel_log.h"

namespace unpin {
namespace {

uint32_t ProgramId(int program_fd) {
  bpf_prog_info description = {};
  uint32_t length = sizeof(description);
  return bpf_obj_get_info_by_fd(program_fd, &description, &length) == 0 ? description.id : 0;
}

// 0 if the interface has gone: the kernel then empties the link.
int InterfaceOfLink(int link_fd) {
  bpf_link_info description = {};
  uint32_t length = sizeof(description);
  if (bpf_obj_get_info_by_fd(link_fd, &description, &length) != 0 ||
      description.type != BPF_LINK_TYPE_XDP)
    return 0;
  return static_cast<int>(description.xdp.ifindex);
}

int CreateLink(int program_fd, const Interface& interface, uint32_t mode) {
  LIBBPF_OPTS(bpf_link_create_opts, options, .flags = mode);
  return bpf_link_create(program_fd, interface.index, BPF_XDP, &options);
}

// Links give no reason, so ask once more over netlink, whose answer carries the driver's own words.
std::string DriversReason(int program_fd, const Interface& interface, int error) {
  const KernelLog log;
  if (bpf_xdp_attach(interface.index, program_fd, XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST,
                     nullptr) == 0) {
    bpf_xdp_detach(interface.index, XDP_FLAGS_DRV_MODE, nullptr);
  }
  return absl::StrCat(ErrnoStatus(error, "native attach").message(), log.Tail());
}

absl::Status PinLink(const std::string& bpffs, const Interface& interface, int link_fd) {
  const std::string folder = absl::StrCat(bpffs, "/links");
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("make ", folder));
  const std::string path = LinkPinPath(bpffs, interface.name);
  if (bpf_obj_pin(link_fd, path.c_str()) != 0)
    return ErrnoStatus(errno, absl::StrCat("pin ", path));
  return absl::OkStatus();
}

}  // namespace

std::string GenericWarning(const Interface& interface, absl::string_view reason) {
  return absl::StrCat(
      "interface ", interface.name,
      ": ATTACHED IN GENERIC MODE, several times slower than native, because: ", reason,
      "\n  usual causes: an MTU above what the driver takes with XDP (of the interface, of a "
      "veth's peer, of a bond's or bridge's"
      " members), too few queues (`ethtool -L ",
      interface.name,
      " combined N`; virtio_net wants two for each CPU), LRO"
      " (`ethtool -K ",
      interface.name,
      " lro off`), or a driver without XDP (VLAN devices among them)."
      "\n  to try again: remove the cause, then `unpind --detach` and start anew");
}

absl::StatusOr<std::optional<Attachment>> AdoptAlone(const Program& program,
                                                     const Interface& interface) {
  const std::string path = LinkPinPath(program.bpffs(), interface.name);
  absl::StatusOr<UniqueFd> link = OpenPin(path);
  if (absl::IsNotFound(link.status())) return std::nullopt;
  if (!link.ok()) return link.status();
  if (InterfaceOfLink(link->get()) != interface.index) {
    if (absl::Status status = RemovePin(path); !status.ok()) return status;
    return std::nullopt;
  }
  const int program_fd = bpf_program__fd(program.data_plane().progs.unpin_ingress);
  if (bpf_link_update(link->get(), program_fd, nullptr) != 0) {
    return ErrnoStatus(
        errno, absl::StrCat("interface ", interface.name, ": replace the program in ", path));
  }
  const auto attached = FindAttached(interface);
  if (!attached.ok()) return attached.status();
  return Attachment{.interface = interface,
                    .way = Attachment::Way::kAlone,
                    .native = attached->has_value() && (*attached)->native,
                    .adopted = true,
                    .program_id = ProgramId(program_fd),
                    .link = *std::move(link)};
}

absl::StatusOr<Attachment> AttachAlone(const Program& program, const Interface& interface,
                                       std::vector<std::string>& warnings) {
  const int program_fd = bpf_program__fd(program.data_plane().progs.unpin_ingress);
  Attachment attachment = {.interface = interface,
                           .way = Attachment::Way::kAlone,
                           .native = true,
                           .adopted = false,
                           .program_id = ProgramId(program_fd),
                           .link = UniqueFd(CreateLink(program_fd, interface, XDP_FLAGS_DRV_MODE))};
  if (!attachment.link.valid()) {
    const std::string reason = DriversReason(program_fd, interface, errno);
    attachment.native = false;
    attachment.link = UniqueFd(CreateLink(program_fd, interface, XDP_FLAGS_SKB_MODE));
    if (!attachment.link.valid()) {
      return ErrnoStatus(
          errno, absl::StrCat("interface ", interface.name, ": attach the data plane (", reason,
                              "); generic attach"));
    }
    warnings.push_back(GenericWarning(interface, reason));
  }
  if (absl::Status status = PinLink(program.bpffs(), interface, attachment.link.get());
      !status.ok())
    return status;
  return attachment;
}

absl::Status DetachAlone(const std::string& bpffs, const std::string& interface) {
  const std::string path = LinkPinPath(bpffs, interface);
  const absl::StatusOr<UniqueFd> link = OpenPin(path);
  if (absl::IsNotFound(link.status())) return absl::OkStatus();
  if (!link.ok()) return link.status();
  // A link of an interface that has gone is empty already.
  if (InterfaceOfLink(link->get()) != 0 && bpf_link_detach(link->get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("interface ", interface, ": detach the data plane"));
  }
  return RemovePin(path);
}

absl::Status CheckStillAttached(const Attachment& attachment) {
  const Interface& interface = attachment.interface;
  const auto lost = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("interface ", interface.name,
                                                      ": the data plane is no longer attached, ",
                                                      why, ": restart unpind to attach it again"));
  };
  const absl::StatusOr<Interface> now = FindInterface(interface.name);
  if (!now.ok()) return now.status();
  if (now->index != interface.index) return lost("the interface was made anew");
  const auto attached = FindAttached(interface);
  if (!attached.ok()) return attached.status();
  if (!attached->has_value()) return lost("nothing is");
  if (attachment.way == Attachment::Way::kAlone) {
    if ((*attached)->id == attachment.program_id) return absl::OkStatus();
    return lost(absl::StrCat("but ", (*attached)->name, " (id ", (*attached)->id, ")"));
  }
  for (const uint32_t id : DispatchedPrograms(interface).value_or(std::vector<uint32_t>())) {
    if (id == attachment.program_id) return absl::OkStatus();
  }
  return lost("the dispatcher does not hold it");
}

}  // namespace unpin
