// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace unpin::gen {
namespace {

// Every power of two is split into this many bins, so a bin is at most 1/256 of its values wide.
constexpr int kSplitBits = 8;
constexpr uint64_t kSplit = 1 << kSplitBits;

size_t BinOf(uint64_t ns) {
  if (ns < kSplit) return ns;
  const int shift = std::bit_width(ns) - 1 - kSplitBits;
  return (shift + 1) * kSplit + ((ns >> shift) - kSplit);
}

uint64_t UpperOf(size_t bin) {
  if (bin < kSplit) return bin;
  const uint64_t shift = bin / kSplit - 1;
  return ((bin % kSplit + kSplit + 1) << shift) - 1;
}

}  // namespace

void Histogram::Add(Duration value) {
  value = std::max(value, Duration(0));
  const size_t bin = BinOf(value.count());
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  ++bins_[bin];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ns_ += value.count();
  ++count_;
}

Duration Histogram::Mean() const {
  return count_ == 0 ? Duration(0) : Duration(std::llround(sum_ns_ / count_));
}

Duration Histogram::Percentile(double percent) const {
  const double wanted = std::ceil(count_ * percent / 100);
  uint64_t seen = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (seen > 0 && seen >= wanted) return std::min(Duration(UpperOf(bin)), max_);
  }
  return max_;
}

std::vector<Histogram::Bin> Histogram::Bins() const {
  std::vector<Bin> bins;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    if (bins_[bin] > 0) bins.push_back({Duration(UpperOf(bin)), bins_[bin]});
  }
  return bins;
}

}  // namespace unpin::gen
