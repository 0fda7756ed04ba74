// SPDX-License-Identifier: Apache-2.0
// One probe of one backend under way: a TCP connect, and what is asked over it. Non-blocking; one thread.
#pragma once

#include <string>

#include "userspace/base/clock.h"
#include "userspace/base/unique_fd.h"
#include "userspace/model/health.h"

namespace unpin {

class Probe {
 public:
  enum class Step { kWaiting, kDone };

  // Begins to connect. A failure at once is kept for Result().
  Probe(const HealthTarget& target, TimePoint now);

  // For epoll: readable and writable are both of interest. -1 once it has failed.
  int fd() const { return socket_.get(); }
  const HealthTarget& target() const { return target_; }
  TimePoint deadline() const { return deadline_; }

  // The socket has something to say; kDone: Result() is final.
  Step OnReady();
  Step OnDeadline();
  bool is_done() const { return is_done_; }
  const ProbeResult& result() const { return result_; }

 private:
  Step Succeed();
  Step Fail(std::string detail, bool decisive = false);
  Step OnConnected();
  Step OnAnswer();

  HealthTarget target_;
  UniqueFd socket_;
  TimePoint deadline_;
  bool is_connected_ = false;
  bool is_done_ = false;
  std::string answer_;
  ProbeResult result_;
};

}  // namespace unpin
