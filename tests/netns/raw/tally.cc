// SPDX-License-Identifier: Apache-2.0
#include "tests/netns/raw/tally.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace unpin::raw {

void Tally::Add(uint64_t seed, const Outcome& outcome) {
  absl::MutexLock lock(&mutex_);
  ++connections_;
  sent_ += outcome.sent;
  received_ += outcome.received;
  if (outcome.status.ok()) {
    ++exact_;
  } else {
    ++(absl::IsDataLoss(outcome.status)   ? inexact_
       : absl::IsNotFound(outcome.status) ? without_goaway_
                                          : broken_);
    const std::string what =
        absl::StrCat("seed ", seed, ", style ", static_cast<int>(outcome.style), ", ",
                     outcome.received, " bytes received: ", outcome.status.ToString(), "\n");
    std::fputs(what.c_str(), stderr);
  }
  if (!outcome.goaway_at || !outcome.status.ok()) return;
  const uint64_t after = outcome.received - *outcome.goaway_at - kSpecialFrame;
  ++spliced_[static_cast<size_t>(outcome.style)];
  received_after_goaway_ += after;
  most_after_goaway_ = std::max(most_after_goaway_, after);
}

std::string Tally::Json() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat(
      "{\"connections\": ", connections_, ", \"exact\": ", exact_, ", \"inexact\": ", inexact_,
      ", \"without_goaway\": ", without_goaway_, ", \"broken\": ", broken_, ", \"sent\": ", sent_,
      ", \"received\": ", received_, ", \"received_after_goaway\": ", received_after_goaway_,
      ", \"most_after_goaway\": ", most_after_goaway_, ", \"spliced\": {\"idle\": ", spliced_[0],
      ", \"steady\": ", spliced_[1], ", \"stalling\": ", spliced_[2],
      ", \"rushing\": ", spliced_[3], "}}");
}

}  // namespace unpin::raw
