// SPDX-License-Identifier: Apache-2.0
// Client channels of which each has a TCP connection of its own.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "userspace/base/clock.h"

namespace unpin::gen {

struct ChannelOptions {
  std::string target;         // round_robin: several, with commas
  bool round_robin = false;   // each channel spreads its RPCs over all of them, a connection each
  bool tls = false;
  std::string tls_ca;    // PEM file; empty: the system's
  std::string tls_name;  // the certificate's, if not the target's
  bool retry = false;
};

// Fails only if a file cannot be read; does not connect.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options);

// Unavailable, with the target and what gRPC last knew, if there is no connection within `timeout`.
absl::Status AwaitConnected(grpc::Channel& channel, const std::string& target, Duration timeout);

// The whole of a PEM file.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace unpin::gen
