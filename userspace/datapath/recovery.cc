// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/recovery.h"

#include "userspace/datapath/agent_program.h"

namespace unpin {

absl::StatusOr<std::unique_ptr<Recovery>> Recovery::Open(const Program& program,
                                                         const RecoveryLimits& limits) {
  const bpf_program* restore = program.goaway().progs.restore_follower;
  std::unique_ptr<Recovery> recovery(new Recovery(
      [restore](unpin_restore_args args) -> absl::StatusOr<unpin_restore_args> {
        if (absl::Status status = RunAgentProgram(restore, args); !status.ok()) return status;
        return args;
      },
      limits));
  auto ring = Ring<unpin_capture>::Open(
      program.data_plane().maps.captures, [self = recovery.get()](const unpin_capture& capture) {
        self->status_.Update(self->gaps_.OnCapture(capture, self->now_));
      });
  if (!ring.ok()) return ring.status();
  recovery->ring_ = *std::move(ring);
  return recovery;
}

absl::Status Recovery::OnReadable(TimePoint now) {
  now_ = now;
  status_ = absl::OkStatus();
  status_.Update(ring_->Consume());
  return status_;
}

}  // namespace unpin
