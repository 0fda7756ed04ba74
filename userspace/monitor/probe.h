// SPDX-License-Identifier: Apache-2.0
// One probe of one backend under way: a TCP connect, and what is asked over it. Non-blocking; one thread.
#pragma once

#include <optional>
#include <string>

#include "userspace/base/clock.h"
#include "userspace/base/unique_fd.h"
#include "userspace/model/health.h"

namespace unpin {

class Probe {
 public:
  enum class Step { kWaiting, kDone };

  // Begins to connect. A failure at once is kept for result().
  Probe(const HealthTarget& target, TimePoint now);

  // For epoll: readable and writable are both of interest. -1 once it has failed.
  int fd() const { return socket_.get(); }
  const HealthTarget& target() const { return target_; }
  TimePoint deadline() const { return deadline_; }

  // The socket has something to say; kDone: result() is final.
  Step OnReady();
  Step OnDeadline();
  bool is_done() const { return is_done_; }
  // Nothing if the probe failed for want of something on this side, which says nothing about the backend.
  const std::optional<ProbeResult>& result() const { return result_; }

 private:
  Step Succeed();
  Step Fail(Health found, std::string detail);
  Step FailToConnect(int error);
  Step OnConnected();
  Step OnAnswer();

  HealthTarget target_;
  UniqueFd socket_;
  TimePoint deadline_;
  bool is_connected_ = false;
  bool is_done_ = false;
  std::string answer_;
  std::optional<ProbeResult> result_;
};

}  // namespace unpin
