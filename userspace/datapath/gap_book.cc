// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/gap_book.h"

#include <algorithm>
#include <span>

#include "userspace/base/status.h"

namespace unpin {

absl::Status GapBook::OnCapture(const unpin_capture& capture, TimePoint now) {
  ++counts_.captures;
  const GapId id(PartsOf(capture.key), capture.start.epoch);
  auto [entry, is_new] = gaps_.try_emplace(id);
  Gap& gap = entry->second;
  if (is_new) {
    gap.key = capture.key;
    gap.reassembler.emplace(capture.start);
    by_age_.emplace_back(now, id);
    ++counts_.gaps;
  }
  if (!gap.reassembler) return absl::OkStatus();

  memory_bytes_ -= gap.reassembler->memory_bytes();
  gap.reassembler->Add(
      capture.sequence,
      std::span(capture.bytes).first(std::min<size_t>(capture.length, UNPIN_CAPTURE_BYTES)));
  const size_t bytes = gap.reassembler->memory_bytes();
  memory_bytes_ += bytes;
  if (gap.reassembler->caught_up()) return TryRestore(gap);
  if (bytes > limits_.bytes_per_gap || memory_bytes_ > limits_.bytes_in_all) return GiveUp(gap);
  return absl::OkStatus();
}

absl::Status GapBook::TryRestore(Gap& gap) {
  const auto result = restore_({.key = gap.key,
                                .follower = gap.reassembler->follower(),
                                .give_up = 0,
                                .result = 0,
                                .highest_seen = 0});
  if (!result.ok()) return Annotate(result.status(), "hand back a followed flow");
  if (result->result == UNPIN_RESTORE_MISSING) {
    gap.reassembler->RaiseHighestSeen(result->highest_seen);
    ++counts_.retried;
    return absl::OkStatus();
  }
  ++(result->result == UNPIN_RESTORE_DONE ? counts_.recovered : counts_.stale);
  End(gap);
  return absl::OkStatus();
}

absl::Status GapBook::GiveUp(Gap& gap) {
  const auto result = restore_({.key = gap.key,
                                .follower = gap.reassembler->follower(),
                                .give_up = 1,
                                .result = 0,
                                .highest_seen = 0});
  End(gap);
  if (!result.ok()) return Annotate(result.status(), "give up following a flow");
  ++(result->result == UNPIN_RESTORE_DONE ? counts_.given_up : counts_.stale);
  return absl::OkStatus();
}

void GapBook::End(Gap& gap) {
  memory_bytes_ -= gap.reassembler->memory_bytes();
  gap.reassembler.reset();
}

absl::Status GapBook::GiveUpOld(TimePoint now) {
  absl::Status status;
  while (!by_age_.empty() && now - by_age_.front().first >= limits_.patience) {
    const auto entry = gaps_.find(by_age_.front().second);
    if (entry->second.reassembler) status.Update(GiveUp(entry->second));
    gaps_.erase(entry);
    by_age_.pop_front();
  }
  return status;
}

}  // namespace unpin
