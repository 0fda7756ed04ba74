// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/neighbors.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr Duration kProbesApart = std::chrono::milliseconds(100);
constexpr timeval kAnswerTime = {.tv_sec = 1, .tv_usec = 0};
constexpr size_t kMaxKnown = 65536;

constexpr int kUsable =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

absl::StatusOr<UniqueFd> OpenSocket(uint32_t groups, int flags) {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE));
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (!fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus(errno, "open a netlink socket for routes and neighbours");
  }
  return fd;
}

struct MessageDeleter {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
using Message = std::unique_ptr<nl_msg, MessageDeleter>;

struct AttributeValue {
  std::optional<IpAddress> address;
  std::string link_layer;
};

AttributeValue ReadNeighbor(const nlmsghdr* message) {
  AttributeValue value;
  int left = nlmsg_attrlen(message, sizeof(ndmsg));
  for (nlattr* at = nlmsg_attrdata(message, sizeof(ndmsg)); nla_ok(at, left);
       at = nla_next(at, &left)) {
    if (nla_type(at) == NDA_DST && nla_len(at) == 4)
      value.address = IpAddress{ntohl(nla_get_u32(at))};
    if (nla_type(at) == NDA_LLADDR) {
      value.link_layer.assign(static_cast<const char*>(nla_data(at)),
                              static_cast<size_t>(nla_len(at)));
    }
  }
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Neighbors>> Neighbors::Open(Controls& controls) {
  absl::StatusOr<UniqueFd> monitor =
      OpenSocket(RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_LINK, SOCK_NONBLOCK);
  if (!monitor.ok()) return monitor.status();
  absl::StatusOr<UniqueFd> requests = OpenSocket(0, 0);
  if (!requests.ok()) return requests.status();
  if (::setsockopt(requests->get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof(kAnswerTime)) !=
      0) {
    return ErrnoStatus(errno, "set the time netlink has to answer");
  }
  return std::unique_ptr<Neighbors>(
      new Neighbors(controls, *std::move(monitor), *std::move(requests)));
}

absl::Status Neighbors::SetBackends(const std::vector<IpAddress>& backends) {
  backends_ = backends;
  return Probe();
}

absl::Status Neighbors::Probe() {
  absl::Status first;
  for (const IpAddress& backend : backends_) {
    const absl::StatusOr<NeighborKey> hop = NextHopOf(backend);
    first.Update(hop.ok() ? Resolve(*hop) : hop.status());
  }
  return first;
}

absl::Status Neighbors::OnMissing(TimePoint now) {
  if (now < next_probe_) return absl::OkStatus();
  next_probe_ = now + kProbesApart;
  return Probe();
}

absl::StatusOr<const nlmsghdr*> Neighbors::Ask(nl_msg* request, std::span<char> buffer,
                                               const std::string& what) {
  nlmsghdr* header = nlmsg_hdr(request);
  header->nlmsg_seq = ++sequence_;
  if (::send(requests_.get(), header, header->nlmsg_len, 0) < 0) return ErrnoStatus(errno, what);
  while (true) {
    int length = static_cast<int>(::recv(requests_.get(), buffer.data(), buffer.size(), 0));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return ErrnoStatus(errno, what);
    const auto* reply = reinterpret_cast<const nlmsghdr*>(buffer.data());
    if (!nlmsg_ok(reply, length)) {
      return absl::InternalError(what + ": the kernel's answer is cut short");
    }
    if (reply->nlmsg_seq != sequence_) continue;  // a late answer to a request that was given up
    if (reply->nlmsg_type != NLMSG_ERROR) return reply;
    const int error = -static_cast<const nlmsgerr*>(nlmsg_data(reply))->error;
    if (error != 0) return ErrnoStatus(error, what);
    return reply;
  }
}

absl::StatusOr<Neighbors::NeighborKey> Neighbors::NextHopOf(IpAddress destination) {
  const Message request(nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST));
  rtmsg route = {};
  route.rtm_family = AF_INET;
  route.rtm_dst_len = 32;
  nlmsg_append(request.get(), &route, sizeof(route), NLMSG_ALIGNTO);
  nla_put_u32(request.get(), RTA_DST, htonl(destination.bits));

  std::array<char, 8192> buffer;
  const absl::StatusOr<const nlmsghdr*> reply = Ask(
      request.get(), buffer, absl::StrCat("look up the route to backend ", destination.ToString()));
  if (!reply.ok()) return reply.status();
  NeighborKey hop = {0, destination};
  int left = nlmsg_attrlen(*reply, sizeof(rtmsg));
  for (nlattr* at = nlmsg_attrdata(*reply, sizeof(rtmsg)); nla_ok(at, left);
       at = nla_next(at, &left)) {
    if (nla_type(at) == RTA_OIF) hop.first = static_cast<int>(nla_get_u32(at));
    if (nla_type(at) == RTA_GATEWAY) hop.second = IpAddress{ntohl(nla_get_u32(at))};
  }
  return hop;
}

absl::Status Neighbors::Resolve(const NeighborKey& hop) {
  const Message request(nlmsg_alloc_simple(RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK));
  ndmsg neighbor = {};
  neighbor.ndm_family = AF_INET;
  neighbor.ndm_ifindex = hop.first;
  neighbor.ndm_flags =
      NTF_USE;  // as if a packet had wanted it: the kernel sends ARP and keeps it alive
  nlmsg_append(request.get(), &neighbor, sizeof(neighbor), NLMSG_ALIGNTO);
  nla_put_u32(request.get(), NDA_DST, htonl(hop.second.bits));
  std::array<char, 8192> buffer;
  return Ask(request.get(), buffer,
             absl::StrCat("ask the kernel to resolve ", hop.second.ToString()))
      .status();
}

bool Neighbors::IsNeighborChange(const nlmsghdr* message) {
  const auto* neighbor = static_cast<const ndmsg*>(nlmsg_data(message));
  if (neighbor->ndm_family != AF_INET) return false;
  const AttributeValue value = ReadNeighbor(message);
  if (!value.address) return false;
  const NeighborKey key = {neighbor->ndm_ifindex, *value.address};
  // A neighbour that is forgotten or fails keeps its old address in the flows: nobody knows better.
  if (message->nlmsg_type != RTM_NEWNEIGH || !(neighbor->ndm_state & kUsable)) return false;
  if (addresses_.size() >= kMaxKnown) addresses_.clear();  // forgetting costs a look-up too many
  std::string& known = addresses_[key];
  if (known == value.link_layer) return false;  // only its state has changed
  known = value.link_layer;
  return true;
}

bool Neighbors::IsChange(const nlmsghdr* message) {
  switch (message->nlmsg_type) {
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return IsNeighborChange(message);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return true;
    default:
      return false;
  }
}

absl::Status Neighbors::OnReadable() {
  std::array<char, 32768> buffer;
  bool changed = false;
  while (true) {
    int length = static_cast<int>(::recv(monitor_.get(), buffer.data(), buffer.size(), 0));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == ENOBUFS) {  // announcements were lost: assume the worst
      changed = true;
      continue;
    }
    if (length < 0 && errno != EAGAIN) return ErrnoStatus(errno, "read netlink announcements");
    if (length <= 0) break;
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(message, length);
         message = nlmsg_next(message, &length)) {
      changed |= IsChange(message);
    }
  }
  return changed ? controls_.RaiseRouteGeneration() : absl::OkStatus();
}

}  // namespace unpin
