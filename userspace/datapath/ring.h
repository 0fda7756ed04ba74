// SPDX-License-Identifier: Apache-2.0
// A consumer of one BPF ring buffer whose records are all of one type.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {

template <typename Record>
class Ring {
 public:
  using Handler = std::function<void(const Record&)>;

  static absl::StatusOr<std::unique_ptr<Ring>> Open(const bpf_map* map, Handler handler) {
    std::unique_ptr<Ring> ring(new Ring(std::move(handler)));
    ring->ring_ = ring_buffer__new(bpf_map__fd(map), &Ring::OnRecord, ring.get(), nullptr);
    if (ring->ring_ == nullptr) {
      return ErrnoStatus(errno, absl::StrCat("open ring buffer ", bpf_map__name(map)));
    }
    return ring;
  }

  ~Ring() { ring_buffer__free(ring_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int fd() const { return ring_buffer__epoll_fd(ring_); }

  // Hands every record that is there to the handler.
  absl::Status Consume() {
    const int result = ring_buffer__consume(ring_);
    return result >= 0 ? absl::OkStatus() : ErrnoStatus(-result, "consume a ring buffer");
  }

 private:
  explicit Ring(Handler handler) : handler_(std::move(handler)) {}

  static int OnRecord(void* self, void* record, size_t size) {
    if (size >= sizeof(Record)) static_cast<Ring*>(self)->handler_(*static_cast<const Record*>(record));
    return 0;
  }

  Handler handler_;
  ring_buffer* ring_ = nullptr;
};

}  // namespace unpin
