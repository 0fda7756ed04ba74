// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/program.h"

#include <unistd.h>

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/datapath/bpffs.h"
#include "userspace/datapath/kernel_log.h"
#include "userspace/datapath/layout.h"

namespace unpin {
namespace {

using LayoutTag = std::array<char, sizeof(kLayoutTag)>;

absl::Status LoadError(int error, absl::string_view object, const KernelLog& log) {
  std::string hint;
  if (error == EPERM || error == EACCES) {
    hint =
        "; loading needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (if you are root, the "
        "lines below are "
        "the verifier's reason)";
  } else if (error == ENOMEM) {
    hint =
        "; the kernel gave no memory for the maps: lower limits.connections, or raise the memory "
        "limit of the "
        "control group";
  }
  return ErrnoStatus(
      error, absl::StrCat("load the BPF object ", object, hint, log.Tail(), "\n  kernel's answer"));
}

// Asked before anything is made: without type information the loader fails late, with lines that name neither cause.
absl::Status CheckTypeInformation() {
  constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
  if (access(kPath, R_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(ErrnoStatus(errno, absl::StrCat("read ", kPath)).message(),
                   ": this kernel has no BTF type information, which loading the data plane needs: "
                   "boot one that was built with "
                   "CONFIG_DEBUG_INFO_BTF=y (distribution kernels are), with /sys mounted"));
}

absl::StatusOr<UniqueFd> MakeLayoutMap() {
  UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unpin_layout", sizeof(uint32_t),
                              sizeof(LayoutTag), 1, nullptr));
  if (!map.valid()) {
    const absl::string_view hint =
        errno == EPERM ? " (run as root: it needs CAP_BPF and CAP_NET_ADMIN)" : "";
    return ErrnoStatus(errno, absl::StrCat("make a BPF map", hint));
  }
  LayoutTag tag = {};
  std::copy(std::begin(kLayoutTag), std::end(kLayoutTag), tag.begin());
  const uint32_t index = 0;
  if (bpf_map_update_elem(map.get(), &index, tag.data(), BPF_ANY) != 0)
    return ErrnoStatus(errno, "write the layout tag");
  return map;
}

// "" if the map cannot be read as one of ours.
std::string ReadLayoutTag(int map) {
  bpf_map_info description = {};
  uint32_t length = sizeof(description);
  LayoutTag tag = {};
  const uint32_t index = 0;
  if (bpf_obj_get_info_by_fd(map, &description, &length) != 0 ||
      description.value_size != sizeof(tag) || bpf_map_lookup_elem(map, &index, tag.data()) != 0) {
    return "";
  }
  return std::string(tag.data(), strnlen(tag.data(), tag.size()));
}

absl::Status ForeignLayout(const std::string& directory, absl::string_view found) {
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": the maps there were made by another version (layout ", found.substr(0, 12),
      ", this one is ", absl::string_view(kLayoutTag).substr(0, 12),
      ") and cannot be adopted. Connections go on as they are. Finish with",
      " that version, or end them and begin anew: stop the agent, then `unpind --detach --bpffs ",
      directory, "`"));
}

// What the failed start has added.
void RemoveNewPins(const std::string& directory, const std::vector<std::string>& before) {
  const absl::StatusOr<std::vector<std::string>> now = ListPins(directory);
  if (!now.ok()) return;
  for (const std::string& name : *now) {
    if (std::find(before.begin(), before.end(), name) == before.end()) {
      RemovePin(absl::StrCat(directory, "/", name))
          .IgnoreError();  // the error that led here says more
    }
  }
  RemoveEmptyBpffsDirectory(directory);
}

template <typename Skeleton>
void SetCapacity(Skeleton& skeleton, uint32_t connections) {
  bpf_map__set_max_entries(skeleton.maps.flows, 2 * connections);  // both directions
  bpf_map__set_max_entries(skeleton.maps.half_open, connections);
}

}  // namespace

absl::StatusOr<Program> Program::Load(const ProgramOptions& options) {
  if (absl::Status status = CheckTypeInformation(); !status.ok()) return status;
  absl::StatusOr<UniqueFd> lock = OpenBpffsDirectory(options.bpffs);
  if (!lock.ok()) return lock.status();
  const absl::StatusOr<std::vector<std::string>> before = ListPins(options.bpffs);
  if (!before.ok()) return before.status();

  Program program(options, *std::move(lock));
  absl::Status status = program.CheckLayout();
  if (status.ok()) status = program.KeepPinnedCapacity();
  if (status.ok()) status = program.LoadObjects();
  if (!status.ok()) {
    RemoveNewPins(options.bpffs, *before);
    return status;
  }
  return program;
}

// The tag is pinned before any map, so maps without one are not ours.
absl::Status Program::CheckLayout() {
  const std::string path = absl::StrCat(options_.bpffs, "/layout");
  absl::StatusOr<UniqueFd> pinned = OpenPin(path);
  if (pinned.ok()) {
    const std::string tag = ReadLayoutTag(pinned->get());
    if (tag != kLayoutTag) return ForeignLayout(options_.bpffs, tag.empty() ? "unknown" : tag);
    adopted_ = true;
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(pinned.status())) return pinned.status();

  RemoveEmptyLinksDirectory(options_.bpffs);  // an agent was killed while it took itself off
  const absl::StatusOr<std::vector<std::string>> names = ListPins(options_.bpffs);
  if (!names.ok()) return names.status();
  if (!names->empty()) return ForeignLayout(options_.bpffs, "none");
  absl::StatusOr<UniqueFd> map = MakeLayoutMap();
  if (!map.ok()) return map.status();
  if (bpf_obj_pin(map->get(), path.c_str()) != 0)
    return ErrnoStatus(errno, absl::StrCat("pin ", path));
  return absl::OkStatus();
}

// A table cannot grow while connections live in it.
absl::Status Program::KeepPinnedCapacity() {
  if (options_.connections == 0 || options_.connections > UINT32_MAX / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("limits.connections: ", options_.connections, " is no table size"));
  }
  const std::string path = absl::StrCat(options_.bpffs, "/flows");
  const absl::StatusOr<UniqueFd> flows = OpenPin(path);
  if (absl::IsNotFound(flows.status())) return absl::OkStatus();
  if (!flows.ok()) return flows.status();
  bpf_map_info description = {};
  uint32_t length = sizeof(description);
  if (bpf_obj_get_info_by_fd(flows->get(), &description, &length) != 0) {
    return ErrnoStatus(errno, absl::StrCat("look at ", path));
  }
  const uint32_t pinned = description.max_entries / 2;
  if (pinned != options_.connections) {
    warnings_.push_back(absl::StrCat("limits.connections: keeping the table for ", pinned,
                                     " connections that is in use, not ", options_.connections,
                                     " (a new size takes effect after `unpind --detach`)"));
    options_.connections = pinned;
  }
  return absl::OkStatus();
}

absl::StatusOr<SkeletonPtr<unpin_skel>> Program::OpenCopy() const {
  LIBBPF_OPTS(bpf_object_open_opts, open, .pin_root_path = options_.bpffs.c_str());
  SkeletonPtr<unpin_skel> copy(unpin_skel__open_opts(&open));
  if (!copy) return ErrnoStatus(errno, "open the BPF object unpin");
  SetCapacity(*copy, options_.connections);
  return copy;
}

absl::Status Program::LoadObjects() {
  const KernelLog log;
  absl::StatusOr<SkeletonPtr<unpin_skel>> data_plane = OpenCopy();
  if (!data_plane.ok()) return data_plane.status();
  if (const int error = unpin_skel__load(data_plane->get()); error != 0)
    return LoadError(-error, "unpin", log);
  data_plane_ = *std::move(data_plane);

  LIBBPF_OPTS(bpf_object_open_opts, open, .pin_root_path = options_.bpffs.c_str());
  goaway_.reset(goaway_skel__open_opts(&open));
  if (!goaway_) return ErrnoStatus(errno, "open the BPF object goaway");
  SetCapacity(*goaway_, options_.connections);
  if (const int error = goaway_skel__load(goaway_.get()); error != 0)
    return LoadError(-error, "goaway", log);
  return absl::OkStatus();
}

absl::Status Program::Unpin() { return UnpinMaps(options_.bpffs); }

absl::Status UnpinMaps(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = ListPins(directory);
  if (!names.ok()) return names.status();
  absl::Status status;
  for (const std::string& name : *names) {
    if (name == "links" || name == "layout") continue;
    status.Update(RemovePin(absl::StrCat(directory, "/", name)));
  }
  // The tag goes last: maps without one would pass for foreign ones.
  if (status.ok()) status.Update(RemovePin(absl::StrCat(directory, "/layout")));
  RemoveEmptyBpffsDirectory(directory);
  return status;
}

}  // namespace unpin
