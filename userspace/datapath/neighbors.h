// SPDX-License-Identifier: Apache-2.0
// Keeps the next hops of the backends resolved in the kernel's neighbour table, and tells the data plane when routes,
// neighbours or links have changed: it asks the kernel's FIB itself (next_hop.h), so the kernel stays the one truth.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"
#include "userspace/base/unique_fd.h"
#include "userspace/datapath/controls.h"

struct nl_msg;
struct nlmsghdr;

namespace unpin {

// Used on one thread.
class Neighbors {
 public:
  // `controls` must outlive it.
  static absl::StatusOr<std::unique_ptr<Neighbors>> Open(Controls& controls);

  // Whom to keep resolved from now on; asks for them at once.
  absl::Status SetBackends(const std::vector<IpAddress>& backends);

  // Asks the kernel to resolve or confirm every next hop. Call it every few seconds. Does all it can; returns the first
  // error.
  absl::Status Probe();

  // The data plane met a backend without a next hop. It says so with every such packet: probes are kept apart.
  absl::Status OnMissing(TimePoint now);

  // Readable when the kernel announces changes.
  int fd() const { return monitor_.get(); }
  absl::Status OnReadable();

 private:
  using NeighborKey = std::pair<int, IpAddress>;  // interface index, address

  Neighbors(Controls& controls, UniqueFd monitor, UniqueFd requests)
      : controls_(controls), monitor_(std::move(monitor)), requests_(std::move(requests)) {}

  absl::StatusOr<NeighborKey> NextHopOf(IpAddress destination);
  absl::Status Resolve(const NeighborKey& hop);
  // Sends the request; returns the kernel's answer to it, in `buffer`.
  absl::StatusOr<const nlmsghdr*> Ask(nl_msg* request, std::span<char> buffer,
                                      const std::string& what);
  // True if the message tells of a change that matters to a next hop.
  bool IsChange(const nlmsghdr* message);
  bool IsNeighborChange(const nlmsghdr* message);

  Controls& controls_;
  UniqueFd monitor_;
  UniqueFd requests_;
  uint32_t sequence_ = 0;
  TimePoint next_probe_;  // not before, for OnMissing()
  std::vector<IpAddress> backends_;
  std::map<NeighborKey, std::string>
      addresses_;  // link-layer address by neighbour, as last announced
};

}  // namespace unpin
