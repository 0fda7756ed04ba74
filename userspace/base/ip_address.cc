// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace unpin {
namespace {

absl::StatusOr<uint16_t> ParsePort(absl::string_view text) {
  // SimpleAtoi also takes blanks and signs; a port is digits only.
  uint32_t port = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &port) || port == 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("port \"", text, "\" is not in 1..65535"));
  }
  return static_cast<uint16_t>(port);
}

}  // namespace

std::string IpAddress::ToString() const {
  return absl::StrCat(bits >> 24, ".", bits >> 16 & 255, ".", bits >> 8 & 255, ".", bits & 255);
}

std::string Endpoint::ToString() const { return absl::StrCat(address.ToString(), ":", port); }

absl::StatusOr<IpAddress> ParseIpAddress(absl::string_view text) {
  in_addr address = {};
  if (text.find('\0') != absl::string_view::npos ||
      inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not an IPv4 address (a.b.c.d)"));
  }
  return IpAddress{ntohl(address.s_addr)};
}

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" has no port (a.b.c.d:port)"));
  }
  absl::StatusOr<IpAddress> address = ParseIpAddress(text.substr(0, colon));
  if (!address.ok()) return address.status();
  absl::StatusOr<uint16_t> port = ParsePort(text.substr(colon + 1));
  if (!port.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": ", port.status().message()));
  }
  return Endpoint{*address, *port};
}

}  // namespace unpin
