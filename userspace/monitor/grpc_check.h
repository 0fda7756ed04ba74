// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1.Health/Check calls, each over a channel that is kept for its backend.
#pragma once

#include <functional>
#include <memory>

#include "userspace/model/health.h"

namespace unpin {

class GrpcCheck {
 public:
  explicit GrpcCheck(const HealthTarget& target);
  ~GrpcCheck();  // no callback runs afterwards

  // `done` is called once, on a thread of gRPC's, at most the target's timeout later. One call at a time.
  void Start(std::function<void(const ProbeResult&)> done);

 private:
  struct Call;
  struct Stub;
  HealthTarget target_;
  std::unique_ptr<Stub> stub_;
  std::shared_ptr<Call> call_;
};

}  // namespace unpin
