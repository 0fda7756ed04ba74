// SPDX-License-Identifier: Apache-2.0
// What the data plane tells, as values of the model.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/datapath/program.h"
#include "userspace/datapath/ring.h"
#include "userspace/model/connection.h"

namespace unpin {

using EventRing = Ring<unpin_event>;

// `on_event` is called from Consume(), on its thread.
absl::StatusOr<std::unique_ptr<EventRing>> OpenEvents(const Program& program,
                                                      std::function<void(const FlowEvent&)> on_event);

}  // namespace unpin
