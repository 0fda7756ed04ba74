// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/signals.h"

#include <signal.h>

#include <algorithm>
#include <ctime>

namespace unpin::gen {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void HoldStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void ReleaseStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool AwaitStopSignal(TimePoint deadline) {
  const sigset_t signals = StopSignals();
  while (true) {
    // Capped, because `deadline` may be the end of time.
    const Duration left = std::clamp<Duration>(deadline - std::min(Now(), deadline), Duration(0),
                                               std::chrono::hours(1));
    const timespec wait{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                        .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    if (sigtimedwait(&signals, nullptr, &wait) > 0) return true;
    if (Now() >= deadline) return false;
  }
}

}  // namespace unpin::gen
