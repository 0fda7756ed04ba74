// SPDX-License-Identifier: Apache-2.0
// One event to every watcher that still listens.
#pragma once

#include <memory>
#include <vector>

#include "userspace/agent/event_queue.h"

namespace unpin {

class Broadcast {
 public:
  std::shared_ptr<EventQueue> Watch(bool connections) {
    auto queue = std::make_shared<EventQueue>(connections);
    queues_.push_back(queue);
    return queue;
  }

  // `is_connection`: only for those who asked for each connection.
  void Push(const Event& event, bool is_connection) {
    std::erase_if(queues_, [](const auto& queue) { return queue.expired(); });
    for (const auto& weak : queues_) {
      const std::shared_ptr<EventQueue> queue = weak.lock();
      if (queue && (!is_connection || queue->wants_connections())) queue->Push(event);
    }
  }

 private:
  std::vector<std::weak_ptr<EventQueue>> queues_;
};

}  // namespace unpin
