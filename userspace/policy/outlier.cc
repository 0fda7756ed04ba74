// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/outlier.h"

#include <algorithm>

namespace unpin {
namespace {

// Of the backends other than `self` whose latency is known; 0: of none.
double MedianOfOthers(std::span<const OutlierSample> samples, BackendId self) {
  std::vector<double> latencies;
  for (const OutlierSample& sample : samples) {
    if (sample.backend != self && sample.latency_s > 0) latencies.push_back(sample.latency_s);
  }
  if (latencies.empty()) return 0;
  const auto middle = latencies.begin() + static_cast<long>(latencies.size() / 2);
  std::ranges::nth_element(latencies, middle);
  return *middle;
}

// Slowest first: the cap must not spare the worst.
std::vector<OutlierSample> OutliersOf(std::span<const OutlierSample> samples, double factor) {
  std::vector<OutlierSample> outliers;
  for (const OutlierSample& sample : samples) {
    if (sample.requests < Outlier::kFewestRequests || sample.latency_s < Outlier::kSmallestLatency)
      continue;
    const double typical = MedianOfOthers(samples, sample.backend);
    if (typical > 0 && sample.latency_s > factor * typical) outliers.push_back(sample);
  }
  std::ranges::stable_sort(outliers, std::ranges::greater{}, &OutlierSample::latency_s);
  return outliers;
}

}  // namespace

std::vector<BackendId> Outlier::Judge(std::span<const OutlierSample> samples,
                                      const OutlierSettings& settings, TimePoint now) {
  std::vector<BackendId> ejected;
  if (settings.latency_factor <= 0) return ejected;
  // Well for as long as it was ejected: the next time counts as the first.
  std::erase_if(ejections_, [&](const auto& entry) {
    const Ejection& e = entry.second;
    return now - e.until >= std::min(settings.longest, settings.base * e.count);
  });
  size_t out = std::ranges::count_if(
      samples, [&](const OutlierSample& s) { return IsEjected(s.backend, now); });
  for (const OutlierSample& sample : OutliersOf(samples, settings.latency_factor)) {
    if (IsEjected(sample.backend, now)) continue;
    const bool allowed = out == 0 || (out + 1) * 100 <= settings.max_percent * samples.size();
    if (!allowed || out + 1 >= samples.size()) break;
    Ejection& ejection = ejections_[sample.backend];
    ++ejection.count;
    ejection.until = now + std::min(settings.longest, settings.base * ejection.count);
    ejected.push_back(sample.backend);
    ++out;
  }
  return ejected;
}

TimePoint Outlier::NextEnd(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [backend, ejection] : ejections_) {
    if (ejection.until > now) next = std::min(next, ejection.until);
  }
  return next;
}

}  // namespace unpin
