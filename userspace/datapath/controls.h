// SPDX-License-Identifier: Apache-2.0
// The settings the data plane reads with every packet: one struct unpin_controls, written whole.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/abi.h"
#include "userspace/datapath/bpf_map.h"
#include "userspace/model/service.h"

namespace unpin {

inline constexpr uint32_t kAllEvents = (1u << (UNPIN_EVENT_NO_NEIGHBOR + 1)) - 1;

struct ControlSettings {
  SnatSettings snat;
  bool reset_unknown = true;         // mid-stream TCP of no known connection: RST, else drop
  uint32_t event_mask = kAllEvents;  // 1 << enum unpin_event_type
};

// Thread-safe: the settings and the route generation are changed by different parts of the agent.
class Controls {
 public:
  // What an earlier agent wrote stays in force until Apply().
  static absl::StatusOr<std::unique_ptr<Controls>> Open(const bpf_map* map);

  // InvalidArgument, with nothing changed, if the settings do not fit. The route generation is kept.
  absl::Status Apply(const ControlSettings& settings);

  // From now on every flow looks its next hop up anew with its next packet.
  absl::Status RaiseRouteGeneration();

 private:
  Controls(BpfMap<uint32_t, unpin_controls> map, const unpin_controls& current)
      : map_(map), current_(current) {}

  absl::Status Write(const unpin_controls& next);

  BpfMap<uint32_t, unpin_controls> map_;
  std::mutex mutex_;
  unpin_controls current_;
};

}  // namespace unpin
