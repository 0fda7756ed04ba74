// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/paging.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace unpin {
namespace {

constexpr uint32_t kMaxPageSize = 10000;

PageKey KeyOf(const ConnectionView& view) {
  return {.client = view.connection.key.client,
          .service = view.service,
          .vip = view.connection.key.vip};
}

bool Before(const ConnectionView& a, const ConnectionView& b) { return KeyOf(a) < KeyOf(b); }

// Escaped only so that nobody comes to rely on what is inside.
std::string ToToken(const PageKey& key) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(key.client.ToString(), "/", key.service, "/", key.vip.ToString()));
}

absl::StatusOr<PageKey> KeyFrom(const std::string& token) {
  std::string text;
  const bool decoded = absl::WebSafeBase64Unescape(token, &text);
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (decoded && parts.size() == 3) {
    const absl::StatusOr<Endpoint> client = ParseEndpoint(parts[0]);
    const absl::StatusOr<Endpoint> vip = ParseEndpoint(parts[2]);
    if (client.ok() && vip.ok())
      return PageKey{.client = *client, .service = parts[1], .vip = *vip};
  }
  return absl::InvalidArgumentError("page_token: is not the next_page_token of a response");
}

}  // namespace

absl::StatusOr<PageRequest> PageRequestFrom(const v1::ListConnectionsRequest& request) {
  PageRequest page;
  if (request.page_size() > kMaxPageSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size: ", request.page_size(), " is more than ", kMaxPageSize));
  }
  if (request.page_size() > 0) page.size = request.page_size();
  if (!request.page_token().empty()) {
    absl::StatusOr<PageKey> key = KeyFrom(request.page_token());
    if (!key.ok()) return key.status();
    page.after = *std::move(key);
  }
  return page;
}

Page TakePage(std::vector<ConnectionView> connections, const PageRequest& request) {
  if (request.after) {
    std::erase_if(connections,
                  [&](const ConnectionView& view) { return KeyOf(view) <= *request.after; });
  }
  const size_t size = std::min(request.size, connections.size());
  // Only the page itself need be in order: a table may hold hundreds of thousands.
  std::partial_sort(connections.begin(), connections.begin() + size, connections.end(), Before);
  Page page;
  if (connections.size() > size) page.next_token = ToToken(KeyOf(connections[size - 1]));
  connections.resize(size);
  page.connections = std::move(connections);
  return page;
}

}  // namespace unpin
