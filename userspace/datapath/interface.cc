// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/interface.h"

#include <linux/bpf.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/base/unique_fd.h"

namespace unpin {
namespace {

absl::StatusOr<int> ReadMtu(const Interface& interface) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "open a socket");
  ifreq request = {};
  interface.name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket.get(), SIOCGIFMTU, &request) != 0) {
    return ErrnoStatus(errno, absl::StrCat("interface ", interface.name, ": read its MTU"));
  }
  return request.ifr_mtu;
}

}  // namespace

absl::StatusOr<Interface> FindInterface(const std::string& name) {
  const unsigned index = if_nametoindex(name.c_str());
  if (index == 0) {
    return absl::NotFoundError(
        absl::StrCat("interface ", name,
                     ": not found in this network namespace (`ip link` shows what is there)"));
  }
  return Interface{name, static_cast<int>(index)};
}

absl::Status CheckMtu(const Interface& interface) {
  const absl::StatusOr<int> mtu = ReadMtu(interface);
  if (!mtu.ok()) return mtu.status();
  if (*mtu <= kMaxMtu) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("interface ", interface.name, ": its MTU of ", *mtu, " is above ", kMaxMtu,
                   ", the most that XDP takes in one page: run `ip link set dev ", interface.name,
                   " mtu ", kMaxMtu, "` or lower"));
}

absl::Status CheckForwarding(const Interface& interface) {
  const std::string path = absl::StrCat("/proc/sys/net/ipv4/conf/", interface.name, "/forwarding");
  std::ifstream file(path);
  int forwarding = 0;
  if (!(file >> forwarding))
    return absl::UnavailableError(
        absl::StrCat("interface ", interface.name, ": read ", path, " failed"));
  if (forwarding != 0) return absl::OkStatus();
  // sysctl takes slashes too, and needs them for names with a dot ("eth0.100").
  return absl::FailedPreconditionError(
      absl::StrCat("interface ", interface.name,
                   ": IPv4 forwarding is off, so the kernel's routing refuses to answer the data "
                   "plane: run `sysctl -w net/ipv4/conf/",
                   interface.name, "/forwarding=1`"));
}

absl::StatusOr<std::optional<AttachedProgram>> FindAttached(const Interface& interface) {
  LIBBPF_OPTS(bpf_xdp_query_opts, query);
  if (const int error = bpf_xdp_query(interface.index, 0, &query); error != 0) {
    return ErrnoStatus(-error,
                       absl::StrCat("interface ", interface.name, ": ask for its XDP program"));
  }
  // In mode MULTI there are several ids and prog_id is 0; the native one comes first in a packet's life.
  const uint32_t id =
      query.prog_id != 0 ? query.prog_id : std::max(query.drv_prog_id, query.skb_prog_id);
  if (id == 0) return std::nullopt;
  AttachedProgram program = {.id = id, .name = "?", .native = query.skb_prog_id != id};
  const UniqueFd fd(bpf_prog_get_fd_by_id(id));
  bpf_prog_info description = {};
  uint32_t length = sizeof(description);
  if (fd.valid() && bpf_obj_get_info_by_fd(fd.get(), &description, &length) == 0)
    program.name = description.name;
  return program;
}

bool ProgramUsesMap(uint32_t program_id, uint32_t map_id) {
  const UniqueFd fd(bpf_prog_get_fd_by_id(program_id));
  if (!fd.valid()) return false;
  std::vector<uint32_t> maps(64);  // the kernel's own limit for one program
  bpf_prog_info description = {};
  description.nr_map_ids = static_cast<uint32_t>(maps.size());
  description.map_ids = reinterpret_cast<uintptr_t>(maps.data());
  uint32_t length = sizeof(description);
  if (bpf_obj_get_info_by_fd(fd.get(), &description, &length) != 0) return false;
  maps.resize(std::min<size_t>(maps.size(), description.nr_map_ids));
  return std::find(maps.begin(), maps.end(), map_id) != maps.end();
}

absl::StatusOr<uint32_t> MapId(int map_fd) {
  bpf_map_info description = {};
  uint32_t length = sizeof(description);
  if (bpf_obj_get_info_by_fd(map_fd, &description, &length) != 0)
    return ErrnoStatus(errno, "ask for a map's id");
  return description.id;
}

}  // namespace unpin
