// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as events one thread waits for.
#pragma once

#include "userspace/base/clock.h"

namespace unpin::gen {

// Must come before any thread is started, so that no thread takes the signal instead.
void HoldStopSignals();

// From now on a stop signal kills. Requires to be called by the thread that held them.
void ReleaseStopSignals();

// True if a stop signal came before `deadline`. Requires HoldStopSignals().
bool AwaitStopSignal(TimePoint deadline);

}  // namespace unpin::gen
