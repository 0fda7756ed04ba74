// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/splicer.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/datapath/abi_convert.h"
#include "userspace/datapath/agent_program.h"
#include "userspace/datapath/own_segments.h"

namespace unpin {
namespace {

unpin_pin_key PinKeyOf(ServiceId service, IpAddress client) {
  return {.service = service, .client = htonl(client.bits)};
}

Refusal ToRefusal(__u32 refusal) {
  static_assert(static_cast<int>(Refusal::kNotFound) == UNPIN_REFUSAL_NOT_FOUND);
  static_assert(static_cast<int>(Refusal::kUndecided) == UNPIN_REFUSAL_UNDECIDED);
  static_assert(static_cast<int>(Refusal::kNoResponse) == UNPIN_REFUSAL_NO_RESPONSE);
  static_assert(static_cast<int>(Refusal::kAlreadyMoved) == UNPIN_REFUSAL_ALREADY_MOVED);
  static_assert(static_cast<int>(Refusal::kLost) == UNPIN_REFUSAL_LOST);
  static_assert(UNPIN_REFUSAL_COUNT == UNPIN_REFUSAL_LOST + 1);
  return static_cast<Refusal>(refusal);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelSplicer>> KernelSplicer::Open(const Program& program) {
  absl::StatusOr<FlowMap> flows = FlowMap::Open(program.data_plane().maps.flows);
  if (!flows.ok()) return flows.status();
  // Protocol 0: it only sends.
  UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) {
    return ErrnoStatus(errno, "open a packet socket for GOAWAYs (needs CAP_NET_RAW)");
  }
  return std::unique_ptr<KernelSplicer>(
      new KernelSplicer(program, *std::move(flows), std::move(socket)));
}

absl::Status KernelSplicer::AddPin(ServiceId service, IpAddress client, BackendId to, MoveId move,
                                   TimePoint expires) {
  unpin_add_pin_args args = {};
  args.key = PinKeyOf(service, client);
  args.pin = {
      .expires_ns = NanosecondsOf(expires), .reserved_until_ns = 0, .backend = to, .move = move};
  absl::Status status = RunAgentProgram(program_.goaway().progs.add_pin, args);
  if (!status.ok() || args.full == 0) return status;
  const std::string pin = absl::StrCat("pin client ", client.ToString(), " for move ", move, ": ");
  return absl::ResourceExhaustedError(
      args.full == 1 ? absl::StrCat(pin, UNPIN_PINS_PER_CLIENT,
                                    " moves of this client to this service are under way")
                     : absl::StrCat(pin, "map pins is full (", UNPIN_MAX_PINNED_CLIENTS, ")"));
}

absl::Status KernelSplicer::RemovePin(ServiceId service, IpAddress client, MoveId move) {
  unpin_add_pin_args args = {};
  args.key = PinKeyOf(service, client);
  args.pin.move = move;
  return RunAgentProgram(program_.goaway().progs.remove_pin, args);
}

absl::StatusOr<Splicer::Armed> KernelSplicer::Arm(const ConnectionKey& key, bool allow_trim,
                                                  Duration min_age) {
  const absl::StatusOr<unpin_flow> c2s = flows_.Get(C2sKeyOf(key));
  if (absl::IsNotFound(c2s.status())) return Armed{.refusal = Refusal::kNotFound};
  if (!c2s.ok()) return c2s.status();
  unpin_arm_args args = {};
  args.s2c = c2s->reverse;
  args.allow_trim = allow_trim;
  args.min_age_ns = static_cast<__u64>(min_age.count());
  absl::Status status = RunAgentProgram(program_.goaway().progs.arm_goaway, args);
  if (!status.ok()) return status;
  return Armed{
      .refusal = ToRefusal(args.refusal),
      .committed = args.refusal == UNPIN_REFUSAL_NONE && args.state == UNPIN_SPLICE_COMMITTED,
      .boundary = args.boundary};
}

absl::Status KernelSplicer::Disarm(const ConnectionKey& key) {
  const absl::StatusOr<unpin_flow> c2s = flows_.Get(C2sKeyOf(key));
  const std::string what = absl::StrCat("disarm ", ToString(key));
  if (absl::IsNotFound(c2s.status())) return absl::NotFoundError(what + ": it is gone");
  if (!c2s.ok()) return c2s.status();
  unpin_arm_args args = {};
  args.s2c = c2s->reverse;
  absl::Status status = RunAgentProgram(program_.goaway().progs.disarm_goaway, args);
  if (!status.ok()) return status;
  if (args.refusal != UNPIN_REFUSAL_NONE) return absl::NotFoundError(what + ": it is gone");
  if (args.state < UNPIN_SPLICE_COMMITTED) return absl::OkStatus();
  return absl::FailedPreconditionError(what + ": its GOAWAY has been committed meanwhile");
}

absl::Status KernelSplicer::EmitGoaway(const ConnectionKey& key) {
  const std::string what = absl::StrCat("send the GOAWAY of ", ToString(key));
  const absl::StatusOr<FlowPair> pair = ReadFlowPair(flows_, C2sKeyOf(key));
  if (absl::IsNotFound(pair.status()))
    return absl::NotFoundError(what + ": the connection is gone");
  if (!pair.ok()) return pair.status();
  // A RST of the server is beyond the 17 bytes: without them the client does not believe it (RFC 5961 section 3.2).
  if (pair->c2s.flags & UNPIN_FLOW_RST) {
    return absl::NotFoundError(what + ": the client has reset the connection");
  }
  // Before a commit nobody sends: this is a later connection from the same port.
  if (pair->s2c.splice.state < UNPIN_SPLICE_COMMITTED) {
    return absl::NotFoundError(what + ": the connection that had committed is gone");
  }
  if (pair->s2c.splice.state > UNPIN_SPLICE_COMMITTED) {
    return absl::FailedPreconditionError(what + ": the client already has it");
  }
  return Annotate(Send(pair->s2c, BuildGoawayFrame(pair->s2c)), what);
}

absl::Status KernelSplicer::Abandon(const ConnectionKey& key) {
  const std::string what = absl::StrCat("reset ", ToString(key));
  const absl::StatusOr<FlowPair> pair = ReadFlowPair(flows_, C2sKeyOf(key));
  if (absl::IsNotFound(pair.status()))
    return absl::NotFoundError(what + ": the connection is gone");
  if (!pair.ok()) return pair.status();
  unpin_arm_args args = {};
  args.s2c = pair->c2s.reverse;
  absl::Status status = RunAgentProgram(program_.goaway().progs.abandon_connection, args);
  if (!status.ok()) return status;
  if (args.refusal != UNPIN_REFUSAL_NONE)
    return absl::NotFoundError(what + ": the connection is gone");
  return Annotate(Send(pair->s2c, BuildResetFrame(pair->s2c)), what);
}

absl::Status KernelSplicer::Send(const unpin_flow& s2c, const std::vector<uint8_t>& frame) const {
  sockaddr_ll to = {};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_IP);
  to.sll_ifindex = static_cast<int>(s2c.rewrite.egress_ifindex);
  to.sll_halen = sizeof(s2c.rewrite.destination_mac);
  std::copy_n(s2c.rewrite.destination_mac, to.sll_halen, to.sll_addr);
  const ssize_t sent = ::sendto(socket_.get(), frame.data(), frame.size(), 0,
                                reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  if (sent == static_cast<ssize_t>(frame.size())) return absl::OkStatus();
  const absl::Status status =
      ErrnoStatus(errno, absl::StrCat("on interface index ", to.sll_ifindex));
  // Never the code of an absent device (NotFound): the connection is there and cannot go on without its GOAWAY.
  return absl::UnavailableError(status.message());
}

absl::StatusOr<std::vector<ConnectionKey>> KernelSplicer::Unacknowledged() {
  std::vector<ConnectionKey> keys;
  const absl::Status status =
      flows_.ForEach([&](const unpin_flow_key& key, const unpin_flow& flow) {
        if (flow.direction != UNPIN_C2S || flow.flags & UNPIN_FLOW_RST) return;
        if (flow.splice.state == UNPIN_SPLICE_COMMITTED) keys.push_back(ConnectionKeyOf(key));
      });
  if (!status.ok()) return status;
  return keys;
}

}  // namespace unpin
