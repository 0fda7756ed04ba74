// SPDX-License-Identifier: Apache-2.0
// Every gap the data plane has asked to have filled, from its first captured packet until the flow is in sync again or
// given up. No I/O of its own, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/datapath/flow_key.h"
#include "userspace/datapath/gap_reassembler.h"

namespace unpin {

struct RecoveryLimits {
  size_t bytes_per_gap = 5u << 19;  // 2.5 MiB: 1 MB streams were seen to need 2.1 MB
  size_t bytes_in_all = 128u << 20;
  Duration patience = std::chrono::seconds(10);  // longer than the common retransmission timeouts
};

struct RecoveryCounts {
  uint64_t captures = 0;
  uint64_t gaps = 0;
  uint64_t recovered = 0;
  uint64_t retried = 0;   // handed back too early: more had arrived meanwhile
  uint64_t stale = 0;     // the flow was gone, or had a newer gap
  uint64_t given_up = 0;  // over a limit: the flow can no longer be moved
};

// Not thread-safe.
class GapBook {
 public:
  // Runs restore_follower; the arguments as it left them.
  using Restore = std::function<absl::StatusOr<unpin_restore_args>(const unpin_restore_args&)>;

  explicit GapBook(Restore restore, RecoveryLimits limits = {})
      : restore_(std::move(restore)), limits_(limits) {}

  // Follows the captured bytes and hands the state back as soon as it is complete.
  absl::Status OnCapture(const unpin_capture& capture, TimePoint now);

  // Gives up the gaps that are too old. All are tried; the first error is returned.
  absl::Status GiveUpOld(TimePoint now);

  const RecoveryCounts& counts() const { return counts_; }
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  // Epochs are unique, but a flow that goes on may leave captures of its last gap in the ring.
  using GapId = std::pair<std::tuple<__be32, __be32, __be16, __be16>, uint32_t>;
  // Empty: it has ended, and captures still on their way are not to begin it anew.
  struct Gap {
    unpin_flow_key key = {};
    std::optional<GapReassembler> reassembler;
  };

  absl::Status TryRestore(Gap& gap);
  absl::Status GiveUp(Gap& gap);
  void End(Gap& gap);

  Restore restore_;
  RecoveryLimits limits_;
  absl::flat_hash_map<GapId, Gap> gaps_;
  std::deque<std::pair<TimePoint, GapId>> by_age_;  // oldest first
  size_t memory_bytes_ = 0;
  RecoveryCounts counts_;
};

}  // namespace unpin
