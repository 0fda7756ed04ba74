// SPDX-License-Identifier: Apache-2.0
// The data plane in the kernel: programs loaded anew by every agent, over maps that outlive it. A first start, a
// restart and an upgrade are therefore one path.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/goaway.skel.h"
#include "bpf/unpin.skel.h"
#include "userspace/base/unique_fd.h"

namespace unpin {

struct SkeletonDeleter {
  void operator()(unpin_skel* skeleton) const { unpin_skel__destroy(skeleton); }
  void operator()(goaway_skel* skeleton) const { goaway_skel__destroy(skeleton); }
};
template <typename Skeleton>
using SkeletonPtr = std::unique_ptr<Skeleton, SkeletonDeleter>;

struct ProgramOptions {
  std::string bpffs = "/sys/fs/bpf/unpin";  // the agent's own directory in a BPF file system
  uint32_t connections = 131072;            // room in the flow table; fixed when the table is made
};

class Program {
 public:
  // Loads both objects. Pinned maps that an earlier agent left are adopted, the others are made and pinned; on failure
  // only what was there before stays. FailedPrecondition if the directory is not on a BPF file system, another
  // agent holds it, or its maps have a foreign layout. Attaches nothing.
  static absl::StatusOr<Program> Load(const ProgramOptions& options);

  // A second copy of the data plane over the same maps, not yet loaded: libxdp loads it itself, as an extension of its
  // dispatcher.
  absl::StatusOr<SkeletonPtr<unpin_skel>> OpenCopy() const;

  // Removes the pins of all maps. With the last attachment gone too, the kernel forgets everything.
  absl::Status Unpin();

  const unpin_skel& data_plane() const { return *data_plane_; }
  const goaway_skel& goaway() const { return *goaway_; }
  const std::string& bpffs() const { return options_.bpffs; }
  bool adopted() const { return adopted_; }  // maps of an earlier agent
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Program(ProgramOptions options, UniqueFd lock)
      : options_(std::move(options)), lock_(std::move(lock)) {}

  absl::Status CheckLayout();
  absl::Status KeepPinnedCapacity();
  absl::Status LoadObjects();

  ProgramOptions options_;  // `connections` as it really is
  UniqueFd lock_;
  SkeletonPtr<unpin_skel> data_plane_;
  SkeletonPtr<goaway_skel> goaway_;
  bool adopted_ = false;
  std::vector<std::string> warnings_;
};

// Removes every pin of a map in `directory`, whoever made it, and the directory unless there are links in it.
absl::Status UnpinMaps(const std::string& directory);

}  // namespace unpin
