// SPDX-License-Identifier: Apache-2.0
// Brings flows that are behind back into step: follows their captured payload and hands the state back.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/datapath/gap_reassembler.h"
#include "userspace/datapath/program.h"
#include "userspace/datapath/ring.h"

namespace unpin {

struct RecoveryLimits {
  size_t bytes_per_gap = 5u << 19;    // 2.5 MiB: 2.1 MB were needed by 1 MB streams
  size_t bytes_in_all = 128u << 20;
  Duration patience = std::chrono::seconds(10);  // of a gap: the longest common retransmission timeouts
};

struct RecoveryCounts {
  uint64_t captures = 0;
  uint64_t gaps = 0;
  uint64_t recovered = 0;
  uint64_t stale = 0;
  uint64_t given_up = 0;
};

// Used on one thread.
class Recovery {
 public:
  // `program` must outlive it.
  static absl::StatusOr<std::unique_ptr<Recovery>> Open(const Program& program,
                                                        const RecoveryLimits& limits = {});

  int fd() const { return ring_->fd(); }
  absl::Status OnReadable(TimePoint now);

  // Gives up gaps that have waited for too long. Call it about once a second.
  absl::Status Tick(TimePoint now);

  const RecoveryCounts& counts() const { return counts_; }
  size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct GapKey {
    unpin_flow_key flow;
    uint32_t epoch;
    bool operator<(const GapKey& other) const;
  };
  struct Gap {
    GapReassembler reassembler;
    TimePoint since;
  };
  using Gaps = std::map<GapKey, Gap>;

  Recovery(const Program& program, const RecoveryLimits& limits)
      : program_(program), limits_(limits) {}

  void OnCapture(const unpin_capture& capture);
  // True if the gap has ended, one way or another.
  bool HandBack(const GapKey& key, Gap& gap, bool give_up);
  Gaps::iterator End(Gaps::iterator gap);

  const Program& program_;
  RecoveryLimits limits_;
  std::unique_ptr<Ring<unpin_capture>> ring_;
  Gaps gaps_;
  size_t memory_bytes_ = 0;
  RecoveryCounts counts_;
  TimePoint now_;
  absl::Status status_;  // the first failure of the run
};

}  // namespace unpin
