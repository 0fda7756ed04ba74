// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses and endpoints as values: parsed once at the door, printed the same everywhere.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace unpin {

// An IPv4 address in host byte order. IPv6 will join here; nothing above base/ looks inside.
struct IpAddress {
  uint32_t bits = 0;

  std::string ToString() const;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

struct Endpoint {
  IpAddress address;
  uint16_t port = 0;  // host byte order

  std::string ToString() const;  // "10.1.1.2:50051"
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// InvalidArgument unless `text` is a dotted quad.
absl::StatusOr<IpAddress> ParseIpAddress(absl::string_view text);

// InvalidArgument unless `text` is "a.b.c.d:port" with a port in 1..65535.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);

template <typename H>
H AbslHashValue(H h, const IpAddress& a) {
  return H::combine(std::move(h), a.bits);
}
template <typename H>
H AbslHashValue(H h, const Endpoint& e) {
  return H::combine(std::move(h), e.address, e.port);
}

}  // namespace unpin
