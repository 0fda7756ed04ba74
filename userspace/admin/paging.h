// SPDX-License-Identifier: Apache-2.0
// Connections in pages. A page resumes after the last key of the one before it, so that connections
// that come and go between two pages neither hide nor repeat another. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/unpin/v1/admin.pb.h"
#include "userspace/agent/operations.h"

namespace unpin {

// What connections are ordered by: unique among them.
struct PageKey {
  Endpoint client;
  std::string service;
  Endpoint vip;
  friend auto operator<=>(const PageKey&, const PageKey&) = default;
};

struct PageRequest {
  std::optional<PageKey> after;
  size_t size = 1000;
};

struct Page {
  std::vector<ConnectionView> connections;  // ordered
  std::string next_token;                   // empty: that was all
};

// InvalidArgument names page_size or page_token.
absl::StatusOr<PageRequest> PageRequestFrom(const v1::ListConnectionsRequest& request);

Page TakePage(std::vector<ConnectionView> connections, const PageRequest& request);

}  // namespace unpin
