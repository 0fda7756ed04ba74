// SPDX-License-Identifier: Apache-2.0
// The gRPC server of `unpin-gen serve`: Echo and Control, grpc.health.v1, and ORCA if asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "userspace/base/clock.h"

namespace unpin::gen {

struct BackendOptions {
  std::string listen;  // ADDR:PORT; port 0 takes a free one
  std::string name;
  size_t workers = 4;
  Duration service_time{0};
  std::optional<Duration> max_connection_age;
  std::optional<Duration> max_connection_age_grace;
  std::string tls_certificate;  // PEM files; both or neither
  std::string tls_key;
  bool orca = false;
};

class Backend {
 public:
  // Serving when it returns.
  static absl::StatusOr<std::unique_ptr<Backend>> Start(const BackendOptions& options);
  ~Backend();  // cancels what still runs

  int port() const;

  // Says NOT_SERVING and goodbye to every client, refuses new connections, and returns when what was in
  // flight is answered, or cancelled after `grace`.
  void Drain(Duration grace);

  uint64_t answered() const;

 private:
  struct Parts;
  explicit Backend(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace unpin::gen
