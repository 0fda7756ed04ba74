// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/attach.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/datapath/attach_alone.h"
#include "userspace/datapath/bpffs.h"
#include "userspace/datapath/dispatcher.h"

namespace unpin {
namespace {

std::vector<uint32_t> OursBehindDispatcher(const Interface& interface, uint32_t controls_id) {
  std::vector<uint32_t> ours;
  for (const uint32_t id : DispatchedPrograms(interface).value_or(std::vector<uint32_t>())) {
    if (ProgramUsesMap(id, controls_id)) ours.push_back(id);
  }
  return ours;
}

// One run over the interfaces of the configuration.
class Attacher {
 public:
  Attacher(const Program& program, uint32_t controls_id)
      : program_(program), controls_id_(controls_id), dispatchers_(KernelTakesDispatchers()) {}

  // Looks, touches nothing.
  absl::Status Check(const Interface& interface) const {
    if (absl::Status status = CheckMtu(interface); !status.ok()) return status;
    if (absl::Status status = CheckForwarding(interface); !status.ok()) return status;
    const auto attached = FindAttached(interface);
    if (!attached.ok()) return attached.status();
    if (!attached->has_value() || ProgramUsesMap((*attached)->id, controls_id_))
      return absl::OkStatus();
    if (dispatchers_ && DispatchedPrograms(interface).has_value()) return absl::OkStatus();
    const absl::string_view reason = dispatchers_
                                         ? "was not attached through libxdp's dispatcher"
                                         : "leaves no room, since this kernel refuses dispatchers";
    return absl::FailedPreconditionError(absl::StrCat(
        "interface ", interface.name, ": the XDP program ", (*attached)->name, " (id ",
        (*attached)->id, ") is there already and ", reason, ": detach it (`ip link set dev ",
        interface.name, " xdp off`)", dispatchers_ ? " and attach it again with xdp-loader" : ""));
  }

  absl::StatusOr<Attachment> Attach(const Interface& interface,
                                    std::vector<std::string>& warnings) {
    // The way an earlier agent chose is kept: changing it would leave a gap.
    absl::StatusOr<std::optional<Attachment>> adopted = AdoptAlone(program_, interface);
    if (!adopted.ok()) return adopted.status();
    if (adopted->has_value()) return **std::move(adopted);
    if (dispatchers_) {
      absl::StatusOr<Attachment> beside = AttachBeside(interface, warnings);
      const auto others = DispatchedPrograms(interface);
      if (beside.ok() || others.has_value()) return beside;
      warnings.push_back(absl::StrCat(
          beside.status().message(), "\n  so it is attached alone: no other XDP program can join"));
    }
    return AttachAlone(program_, interface, warnings);
  }

 private:
  absl::StatusOr<Attachment> AttachBeside(const Interface& interface,
                                          std::vector<std::string>& warnings) {
    if (!extension_) {
      absl::StatusOr<Extension> opened = Extension::Open(program_);
      if (!opened.ok()) return opened.status();
      extension_ = std::make_unique<Extension>(*std::move(opened));
    }
    const std::vector<uint32_t> old = OursBehindDispatcher(interface, controls_id_);
    bool native = true;
    absl::Status status = extension_->Attach(interface, true);
    if (!status.ok()) {
      const absl::Status generic = extension_->Attach(interface, false);
      if (!generic.ok()) return status;
      native = false;
      warnings.push_back(GenericWarning(interface, status.message()));
    }
    for (const uint32_t id : old) {
      if (absl::Status removed = RemoveDispatched(interface, id); !removed.ok()) return removed;
    }
    return Attachment{.interface = interface,
                      .way = Attachment::Way::kDispatcher,
                      .native = native,
                      .adopted = !old.empty(),
                      .program_id = extension_->id(),
                      .link = UniqueFd()};
  }

  const Program& program_;
  uint32_t controls_id_;
  bool dispatchers_;
  std::unique_ptr<Extension> extension_;
};

absl::Status DetachOne(Attachment& attachment, const std::string& bpffs) {
  if (attachment.way == Attachment::Way::kAlone)
    return DetachAlone(bpffs, attachment.interface.name);
  return RemoveDispatched(attachment.interface, attachment.program_id);
}

// The function and its struct share a name.
using InterfaceList = std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)>;

// Takes the data plane off all interfaces but those of `keep`; returns their names.
absl::StatusOr<std::vector<std::string>> DetachOthers(const std::string& bpffs,
                                                      uint32_t controls_id,
                                                      const std::vector<Attachment>& keep) {
  const auto kept = [&](const std::string& name) {
    return std::any_of(keep.begin(), keep.end(),
                       [&](const Attachment& a) { return a.interface.name == name; });
  };
  std::vector<std::string> gone;
  absl::Status status;
  const absl::StatusOr<std::vector<std::string>> pins = ListPins(absl::StrCat(bpffs, "/links"));
  if (!pins.ok()) return pins.status();
  for (const std::string& pin : *pins) {
    const std::string name = InterfaceOfLinkPin(pin);
    if (kept(name)) continue;
    status.Update(DetachAlone(bpffs, name));
    gone.push_back(name);
  }
  const InterfaceList all(::if_nameindex(), if_freenameindex);
  for (const struct if_nameindex* entry = all.get(); entry != nullptr && entry->if_index != 0;
       ++entry) {
    const Interface interface = {entry->if_name, static_cast<int>(entry->if_index)};
    if (kept(interface.name)) continue;
    for (const uint32_t id : OursBehindDispatcher(interface, controls_id)) {
      status.Update(RemoveDispatched(interface, id));
      gone.push_back(interface.name);
    }
  }
  if (!status.ok()) return status;
  return gone;
}

}  // namespace

absl::StatusOr<Attachments> Attachments::Attach(const Program& program,
                                                const std::vector<std::string>& interfaces) {
  const absl::StatusOr<uint32_t> controls_id =
      MapId(bpf_map__fd(program.data_plane().maps.controls));
  if (!controls_id.ok()) return controls_id.status();
  Attacher attacher(program, *controls_id);

  std::vector<Interface> found;
  for (const std::string& name : interfaces) {
    if (std::ranges::find(found, name, &Interface::name) != found.end()) {
      return absl::InvalidArgumentError(absl::StrCat("interface ", name, ": is named twice"));
    }
    const absl::StatusOr<Interface> interface = FindInterface(name);
    if (!interface.ok()) return interface.status();
    if (absl::Status status = attacher.Check(*interface); !status.ok()) return status;
    found.push_back(*interface);
  }

  Attachments attachments(program.bpffs());
  for (const Interface& interface : found) {
    absl::StatusOr<Attachment> attachment = attacher.Attach(interface, attachments.warnings_);
    if (!attachment.ok()) {
      attachments.RollBack();
      return attachment.status();
    }
    attachments.list_.push_back(*std::move(attachment));
  }

  const auto gone = DetachOthers(program.bpffs(), *controls_id, attachments.list_);
  if (!gone.ok()) {
    attachments.RollBack();
    return gone.status();
  }
  for (const std::string& name : *gone) {
    attachments.warnings_.push_back(
        absl::StrCat("interface ", name, ": no longer configured, so it was let go"));
  }
  return attachments;
}

// The first error is already on its way to the operator.
void Attachments::RollBack() {
  for (Attachment& attachment : list_) {
    if (!attachment.adopted) DetachOne(attachment, bpffs_).IgnoreError();
  }
}

std::vector<std::string> Attachments::CheckAgain() {
  std::vector<std::string> troubles;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) troubles.emplace_back(status.message());
  };
  for (const Attachment& attachment : list_) {
    const absl::StatusOr<Interface> interface = FindInterface(attachment.interface.name);
    note(interface.status());
    if (!interface.ok()) continue;
    note(CheckMtu(*interface));
    note(CheckForwarding(*interface));
    note(CheckStillAttached(attachment));
  }
  std::vector<std::string> fresh;
  for (const std::string& trouble : troubles) {
    const bool known =
        std::find(known_troubles_.begin(), known_troubles_.end(), trouble) != known_troubles_.end();
    if (!known) fresh.push_back(trouble);
  }
  known_troubles_ = std::move(troubles);
  return fresh;
}

absl::Status Attachments::Detach() {
  absl::Status status;
  for (Attachment& attachment : list_) status.Update(DetachOne(attachment, bpffs_));
  list_.clear();
  return status;
}

absl::Status DetachEverything(const std::string& bpffs) {
  const absl::StatusOr<UniqueFd> lock = OpenBpffsDirectory(bpffs);
  if (!lock.ok()) return lock.status();
  uint32_t controls_id = 0;  // no map has it
  if (const absl::StatusOr<UniqueFd> controls = OpenPin(absl::StrCat(bpffs, "/controls"));
      controls.ok()) {
    const absl::StatusOr<uint32_t> id = MapId(controls->get());
    if (!id.ok()) return id.status();
    controls_id = *id;
  }
  const auto gone = DetachOthers(bpffs, controls_id, {});
  if (!gone.ok()) return gone.status();
  return UnpinMaps(bpffs);
}

}  // namespace unpin
