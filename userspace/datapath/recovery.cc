// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/recovery.h"

#include <cstring>
#include <span>

#include "userspace/datapath/agent_program.h"

namespace unpin {

bool Recovery::GapKey::operator<(const GapKey& other) const {
  const int order = std::memcmp(&flow, &other.flow, sizeof(flow));
  return order != 0 ? order < 0 : epoch < other.epoch;
}

absl::StatusOr<std::unique_ptr<Recovery>> Recovery::Open(const Program& program,
                                                         const RecoveryLimits& limits) {
  std::unique_ptr<Recovery> recovery(new Recovery(program, limits));
  Recovery* const self = recovery.get();
  auto ring = Ring<unpin_capture>::Open(
      program.data_plane().maps.captures,
      [self](const unpin_capture& capture) { self->OnCapture(capture); });
  if (!ring.ok()) return ring.status();
  recovery->ring_ = *std::move(ring);
  return recovery;
}

absl::Status Recovery::OnReadable(TimePoint now) {
  now_ = now;
  status_ = ring_->Consume();
  return status_;
}

void Recovery::OnCapture(const unpin_capture& capture) {
  ++counts_.captures;
  if (capture.length > sizeof(capture.bytes)) return;
  const GapKey key = {.flow = capture.key, .epoch = capture.start.epoch};
  auto [gap, is_new] =
      gaps_.try_emplace(key, Gap{.reassembler = GapReassembler(capture.start), .since = now_});
  counts_.gaps += is_new;

  GapReassembler& reassembler = gap->second.reassembler;
  const size_t before = is_new ? 0 : reassembler.memory_bytes();
  reassembler.Add(capture.sequence, std::span(capture.bytes, capture.length));
  memory_bytes_ += reassembler.memory_bytes() - before;

  const bool too_much =
      reassembler.memory_bytes() > limits_.bytes_per_gap || memory_bytes_ > limits_.bytes_in_all;
  if (!too_much && !reassembler.caught_up()) return;
  if (HandBack(key, gap->second, too_much)) End(gap);
}

bool Recovery::HandBack(const GapKey& key, Gap& gap, bool give_up) {
  unpin_restore_args args = {};
  args.key = key.flow;
  args.follower = gap.reassembler.follower();
  args.follower.epoch = key.epoch;
  args.give_up = give_up;
  absl::Status status = RunAgentProgram(program_.goaway().progs.restore_follower, args);
  if (!status.ok()) {
    status_.Update(status);
    return true;
  }
  switch (args.result) {
    case UNPIN_RESTORE_MISSING:  // a packet passed meanwhile: its capture is on the way
      gap.reassembler.RaiseHighestSeen(args.highest_seen);
      return false;
    case UNPIN_RESTORE_DONE:
      ++(give_up ? counts_.given_up : counts_.recovered);
      return true;
    default:
      ++counts_.stale;
      return true;
  }
}

Recovery::Gaps::iterator Recovery::End(Gaps::iterator gap) {
  memory_bytes_ -= gap->second.reassembler.memory_bytes();
  return gaps_.erase(gap);
}

absl::Status Recovery::Tick(TimePoint now) {
  now_ = now;
  status_ = absl::OkStatus();
  for (auto gap = gaps_.begin(); gap != gaps_.end();) {
    const bool is_due = now - gap->second.since > limits_.patience;
    gap = is_due && HandBack(gap->first, gap->second, true) ? End(gap) : std::next(gap);
  }
  return status_;
}

}  // namespace unpin
