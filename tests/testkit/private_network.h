// SPDX-License-Identifier: Apache-2.0
// A gateway's network for one test process: interfaces, routes and permanent neighbours in a namespace of its own,
// which goes away with the process. Nothing is ever sent through it; the kernel's FIB answers from it.
//
//   client 10.0.0.2, .3 -- bt-c [gateway] bt-b1 -- backend 10.1.1.2
//                                         bt-b2 -- backend 10.1.2.2   (10.1.2.99 has no neighbour entry)
#pragma once

#include "absl/status/statusor.h"
#include "tests/testkit/packet.h"

namespace unpin::testkit {

struct Link {
  uint32_t ifindex = 0;
  Mac gateway;  // of the interface itself
  Mac peer;     // of every host behind it
};

struct PrivateNetwork {
  Link client;
  Link backend[2];
};

// Moves the calling thread into a new network namespace and builds the picture above. Needs root.
absl::StatusOr<PrivateNetwork> EnterPrivateNetwork();

// Runs one line of `ip -batch` in the caller's namespace.
absl::Status Ip(const std::string& commands);

}  // namespace unpin::testkit
