// SPDX-License-Identifier: Apache-2.0
// Outlier detection by latency: a backend that answers many times slower than its like is given nothing for a while (gRFC
// A50's ejection times and cap; the measure is ours). Pure: time is an argument.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "userspace/base/clock.h"
#include "userspace/model/service.h"

namespace unpin {

struct OutlierSample {
  BackendId backend = 0;
  double latency_s = 0;  // mean, by Little's law; 0: not known
  double requests = 0;   // that it is a mean of
};

class Outlier {
 public:
  static constexpr double kSmallestLatency = 0.02;  // seconds; faster than that is never an outlier
  static constexpr double kFewestRequests = 3;

  // Judges all backends of a service. Returns those newly ejected; at least one is always possible, more only up to the
  // share allowed, and never all.
  std::vector<BackendId> Judge(std::span<const OutlierSample> samples,
                               const OutlierSettings& settings, TimePoint now);

  bool IsEjected(BackendId backend, TimePoint now) const {
    const auto found = ejections_.find(backend);
    return found != ejections_.end() && found->second.until > now;
  }
  // When the next ejection ends; TimePoint::max() if there is none.
  TimePoint NextEnd(TimePoint now) const;

 private:
  struct Ejection {
    TimePoint until;
    uint32_t count = 0;  // of times in a row
  };
  std::map<BackendId, Ejection> ejections_;
};

}  // namespace unpin
