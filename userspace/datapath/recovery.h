// SPDX-License-Identifier: Apache-2.0
// Brings flows that are behind back into step: follows their captured payload and hands the state back.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/datapath/gap_book.h"
#include "userspace/datapath/program.h"
#include "userspace/datapath/ring.h"

namespace unpin {

// Used on one thread.
class Recovery {
 public:
  // `program` must outlive it.
  static absl::StatusOr<std::unique_ptr<Recovery>> Open(const Program& program,
                                                        const RecoveryLimits& limits = {});

  int fd() const { return ring_->fd(); }
  // Works off all captures there are; the first failure is returned.
  absl::Status OnReadable(TimePoint now);

  // Gives up gaps that have waited for too long. Call it about once a second.
  absl::Status Tick(TimePoint now) { return gaps_.GiveUpOld(now); }

  const RecoveryCounts& counts() const { return gaps_.counts(); }
  size_t memory_bytes() const { return gaps_.memory_bytes(); }

 private:
  Recovery(GapBook::Restore restore, const RecoveryLimits& limits)
      : gaps_(std::move(restore), limits) {}

  GapBook gaps_;
  std::unique_ptr<Ring<unpin_capture>> ring_;
  TimePoint now_;        // of the OnReadable() that is going on
  absl::Status status_;  // likewise
};

}  // namespace unpin
