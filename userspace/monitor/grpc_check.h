// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1.Health/Check calls, over a channel that is kept for its backend while it answers.
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

  // The next call goes over a new connection: the old one may have died with its host, and not know it.
  void Reconnect();

 private:
  struct Call;
  struct Stub;
  HealthTarget target_;
  std::unique_ptr<Stub> stub_;
  std::shared_ptr<Call> call_;
};

}  // namespace unpin
