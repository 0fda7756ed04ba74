// SPDX-License-Identifier: Apache-2.0
#include "tests/testkit/private_network.h"

#include <net/if.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace unpin::testkit {
namespace {

constexpr char kTopology[] = R"(
link set lo up
link add bt-c address 02:00:00:00:00:01 type veth peer name bt-c-peer
link add bt-b1 address 02:00:00:00:00:11 type veth peer name bt-b1-peer
link add bt-b2 address 02:00:00:00:00:21 type veth peer name bt-b2-peer
link set bt-c-peer up
link set bt-b1-peer up
link set bt-b2-peer up
link set bt-c up
link set bt-b1 up
link set bt-b2 up
address add 10.0.0.1/24 dev bt-c
address add 10.1.1.1/24 dev bt-b1
address add 10.1.2.1/24 dev bt-b2
neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev bt-c
neigh replace 10.0.0.3 lladdr 02:00:00:00:00:02 nud permanent dev bt-c
neigh replace 10.1.1.2 lladdr 02:00:00:00:00:12 nud permanent dev bt-b1
neigh replace 10.1.2.2 lladdr 02:00:00:00:00:22 nud permanent dev bt-b2
)";

absl::Status WriteSysctl(const std::string& name, const std::string& value) {
  const std::string path = absl::StrCat("/proc/sys/net/ipv4/", name);
  std::ofstream file(path);
  file << value << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("write ", value, " to ", path));
}

absl::StatusOr<Link> FindLink(const char* name, uint8_t net) {
  const uint32_t ifindex = if_nametoindex(name);
  if (ifindex == 0) return absl::ErrnoToStatus(errno, absl::StrCat("find interface ", name));
  return Link{.ifindex = ifindex,
              .gateway = {2, 0, 0, 0, 0, static_cast<uint8_t>(net + 1)},
              .peer = {2, 0, 0, 0, 0, static_cast<uint8_t>(net + 2)}};
}

}  // namespace

absl::Status Ip(const std::string& commands) {
  FILE* pipe = popen("ip -batch -", "w");
  if (pipe == nullptr) return absl::ErrnoToStatus(errno, "start ip -batch");
  fputs(commands.c_str(), pipe);
  const int status = pclose(pipe);
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("ip -batch: wait status ", status, " (see its message above)"));
}

absl::StatusOr<PrivateNetwork> EnterPrivateNetwork() {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::ErrnoToStatus(errno, "unshare the network namespace (these tests need root)");
  }
  absl::Status status = Ip(kTopology);
  for (const char* name : {"bt-c", "bt-b1", "bt-b2"}) {
    if (status.ok()) status = WriteSysctl(absl::StrCat("conf/", name, "/forwarding"), "1");
  }
  if (!status.ok()) return status;

  const absl::StatusOr<Link> links[] = {FindLink("bt-c", 0x00), FindLink("bt-b1", 0x10),
                                        FindLink("bt-b2", 0x20)};
  for (const auto& link : links) {
    if (!link.ok()) return link.status();
  }
  return PrivateNetwork{.client = *links[0], .backend = {*links[1], *links[2]}};
}

}  // namespace unpin::testkit
