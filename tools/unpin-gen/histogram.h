// SPDX-License-Identifier: Apache-2.0
// A log-linear histogram of durations in the manner of HdrHistogram (Debian 12 has no C or C++ one).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "userspace/base/clock.h"

namespace unpin::gen {

class Histogram {
 public:
  struct Bin {
    Duration upper;  // the largest duration that falls into this bin
    uint64_t count = 0;
  };

  // A negative value counts as zero.
  void Add(Duration value);

  uint64_t count() const { return count_; }
  Duration min() const { return min_; }
  Duration max() const { return max_; }
  Duration Mean() const;

  // The smallest recorded duration that at least `percent` of the values do not exceed, at most 1/256
  // too high and never above max(). Zero when empty. Requires 0 < percent <= 100.
  Duration Percentile(double percent) const;

  // The bins that hold anything, in rising order.
  std::vector<Bin> Bins() const;

 private:
  std::vector<uint64_t> bins_;
  uint64_t count_ = 0;
  double sum_ns_ = 0;
  Duration min_{0};
  Duration max_{0};
};

}  // namespace unpin::gen
