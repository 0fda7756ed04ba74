// SPDX-License-Identifier: Apache-2.0
// Pins, GOAWAYs and resets: asks the data plane under the flow's lock, and sends the segment that it made room for.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/base/unique_fd.h"
#include "userspace/datapath/flows.h"
#include "userspace/datapath/program.h"
#include "userspace/model/ports.h"

namespace unpin {

class KernelSplicer final : public Splicer {
 public:
  // Needs CAP_NET_RAW for the packet socket. `program` must outlive the splicer.
  static absl::StatusOr<std::unique_ptr<KernelSplicer>> Open(const Program& program);

  absl::Status AddPin(ServiceId service, IpAddress client, BackendId to, MoveId move,
                      TimePoint expires) override;
  absl::Status RemovePin(ServiceId service, IpAddress client, MoveId move) override;
  absl::StatusOr<Armed> Arm(const ConnectionKey& key, bool allow_trim, Duration min_age) override;
  absl::Status Disarm(const ConnectionKey& key) override;
  absl::Status EmitGoaway(const ConnectionKey& key) override;
  absl::StatusOr<std::vector<ConnectionKey>> Unacknowledged() override;
  absl::Status Abandon(const ConnectionKey& key) override;

 private:
  KernelSplicer(const Program& program, FlowMap flows, UniqueFd socket)
      : program_(program), flows_(std::move(flows)), socket_(std::move(socket)) {}

  absl::Status Send(const unpin_flow& s2c, const std::vector<uint8_t>& frame) const;

  const Program& program_;
  FlowMap flows_;
  UniqueFd socket_;
};

}  // namespace unpin
