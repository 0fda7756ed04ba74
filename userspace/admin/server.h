// SPDX-License-Identifier: Apache-2.0
// The admin API on a unix socket, with reflection and grpc.health.v1.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "userspace/agent/operations.h"

namespace unpin {

class AdminServer {
 public:
  // Serves from now on, to whom the socket's mode (0660) lets in. A socket that nobody listens on
  // is replaced. FailedPrecondition if somebody does, or if `path` is something else than a socket.
  // `operations` must live longer than the server.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(Operations& operations,
                                                            const std::string& path);

  // Stops at once if not yet stopped.
  virtual ~AdminServer() = default;

  // Takes no new calls, gives those under way `grace` to finish, then cancels them. The socket is
  // gone afterwards.
  virtual void Stop(Duration grace) = 0;
};

}  // namespace unpin
