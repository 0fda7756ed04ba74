// SPDX-License-Identifier: Apache-2.0
// What became of all connections of one process, told as one line of JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/netns/raw/peer.h"

namespace unpin::raw {

class Tally {
 public:
  // Prints to stderr, at once, what was not exact.
  void Add(uint64_t seed, const Outcome& outcome);
  std::string Json() const;

 private:
  mutable absl::Mutex mutex_;
  uint64_t connections_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t exact_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t inexact_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t without_goaway_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t broken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t received_after_goaway_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t most_after_goaway_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<uint64_t, kStyles> spliced_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace unpin::raw
