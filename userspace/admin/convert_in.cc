// SPDX-License-Identifier: Apache-2.0
// Requests to model values.
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "userspace/admin/convert.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr Duration kMaxWindow = std::chrono::hours(24);
constexpr Duration kMaxWait = std::chrono::minutes(1);

absl::Status Invalid(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::StatusOr<std::string> Name(absl::string_view field, const std::string& name) {
  if (name.empty()) return Invalid(field, "must name a service");
  return name;
}

// A name to be given must be well-formed; one that is looked up merely will not be found.
absl::StatusOr<std::string> NewName(absl::string_view field, const std::string& name) {
  bool valid = !name.empty() && name.size() <= 63;
  for (const char c : name) {
    valid = valid && (absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-');
  }
  if (valid) return name;
  return Invalid(field, absl::StrCat("\"", name, "\" is not 1 to 63 of a-z, 0-9 and -"));
}

absl::StatusOr<Endpoint> EndpointFrom(absl::string_view prefix, const std::string& address,
                                      uint32_t port) {
  const absl::StatusOr<IpAddress> ip = ParseIpAddress(address);
  if (!ip.ok()) return Annotate(ip.status(), absl::StrCat(prefix, "address"));
  if (port < 1 || port > std::numeric_limits<uint16_t>::max()) {
    return Invalid(absl::StrCat(prefix, "port"), absl::StrCat(port, " is not in 1..65535"));
  }
  return Endpoint{.address = *ip, .port = static_cast<uint16_t>(port)};
}

template <typename Request>
absl::StatusOr<BackendRef> RefFrom(const Request& request) {
  absl::StatusOr<std::string> service = Name("service", request.service());
  if (!service.ok()) return service.status();
  const absl::StatusOr<Endpoint> endpoint = EndpointFrom("", request.address(), request.port());
  if (!endpoint.ok()) return endpoint.status();
  return BackendRef{.service = *std::move(service), .endpoint = *endpoint};
}

absl::StatusOr<uint32_t> Weight(int32_t weight) {
  if (weight < 0 || weight > std::numeric_limits<uint16_t>::max()) {
    return Invalid("weight", absl::StrCat(weight, " is not in 0..65535"));
  }
  return static_cast<uint32_t>(weight);
}

absl::StatusOr<Duration> DurationFrom(absl::string_view field,
                                      const google::protobuf::Duration& duration, Duration most) {
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(most);
  // Seconds are compared first: as nanoseconds they might overflow.
  if (duration.seconds() >= 0 && duration.seconds() <= limit.count() && duration.nanos() >= 0 &&
      duration.nanos() < 1'000'000'000) {
    const Duration value =
        std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
    if (value <= most) return value;
  }
  return Invalid(field,
                 absl::StrCat(duration.seconds(), ".", absl::Dec(duration.nanos(), absl::kZeroPad9),
                              " s is not in 0..", limit.count(), " s"));
}

absl::StatusOr<Protocol> ProtocolFrom(absl::string_view text) {
  for (const Protocol protocol :
       {Protocol::kUnknown, Protocol::kH2, Protocol::kTls, Protocol::kHttp1, Protocol::kOpaque}) {
    if (text == ToString(protocol)) return protocol;
  }
  return Invalid("protocol",
                 absl::StrCat("\"", text, "\" is not h2, tls, http1, opaque or unknown"));
}

absl::Status AddClient(const std::string& text, ConnectionFilter& filter) {
  if (text.find(':') == std::string::npos) {
    const absl::StatusOr<IpAddress> address = ParseIpAddress(text);
    if (!address.ok()) return Annotate(address.status(), "client");
    filter.client = *address;
    return absl::OkStatus();
  }
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(text);
  if (!endpoint.ok()) return Annotate(endpoint.status(), "client");
  filter.client = endpoint->address;
  filter.client_port = endpoint->port;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServiceSpec> ServiceFrom(const v1::AddServiceRequest& request) {
  if (!request.has_service()) return Invalid("service", "must be set");
  const v1::Service& service = request.service();
  absl::StatusOr<std::string> name = NewName("service.name", service.name());
  if (!name.ok()) return name.status();
  const absl::StatusOr<Endpoint> vip = EndpointFrom("service.", service.address(), service.port());
  if (!vip.ok()) return vip.status();
  return ServiceSpec{.name = *std::move(name), .vip = *vip, .snat = service.snat(), .policy = {}};
}

absl::StatusOr<std::string> ServiceNameFrom(const v1::RemoveServiceRequest& request) {
  return Name("name", request.name());
}

absl::StatusOr<BackendRef> BackendFrom(const v1::AddBackendRequest& r) { return RefFrom(r); }
absl::StatusOr<BackendRef> BackendFrom(const v1::SetBackendRequest& r) { return RefFrom(r); }
absl::StatusOr<BackendRef> BackendFrom(const v1::RemoveBackendRequest& r) { return RefFrom(r); }
absl::StatusOr<BackendRef> BackendFrom(const v1::DrainBackendRequest& r) { return RefFrom(r); }
absl::StatusOr<BackendRef> BackendFrom(const v1::UndrainBackendRequest& r) { return RefFrom(r); }

absl::StatusOr<uint32_t> WeightFrom(const v1::AddBackendRequest& request) {
  return request.has_weight() ? Weight(request.weight()) : BackendSpec().weight;
}

absl::StatusOr<uint32_t> WeightFrom(const v1::SetBackendRequest& request) {
  return Weight(request.weight());
}

absl::StatusOr<Duration> WindowFrom(const v1::DrainBackendRequest& request) {
  if (!request.has_window()) return std::chrono::seconds(1);
  return DurationFrom("window", request.window(), kMaxWindow);
}

absl::StatusOr<ConnectionFilter> FilterFrom(const v1::ListConnectionsRequest& request) {
  ConnectionFilter filter;
  if (!request.service().empty()) filter.service = request.service();
  if (!request.client().empty()) {
    if (absl::Status status = AddClient(request.client(), filter); !status.ok()) return status;
  }
  if (!request.backend().empty()) {
    const absl::StatusOr<Endpoint> backend = ParseEndpoint(request.backend());
    if (!backend.ok()) return Annotate(backend.status(), "backend");
    filter.backend = *backend;
  }
  if (!request.protocol().empty()) {
    const absl::StatusOr<Protocol> protocol = ProtocolFrom(request.protocol());
    if (!protocol.ok()) return protocol.status();
    filter.protocol = *protocol;
  }
  if (request.has_spliceable()) filter.spliceable = request.spliceable();
  return filter;
}

absl::StatusOr<MoveOrder> MoveOrderFrom(const v1::MoveConnectionRequest& request) {
  const absl::StatusOr<Endpoint> client = ParseEndpoint(request.client());
  if (!client.ok()) return Annotate(client.status(), "client");
  MoveOrder order{.client = *client, .service = std::nullopt, .target = std::nullopt};
  if (!request.service().empty()) order.service = request.service();
  if (!request.target().empty()) {
    const absl::StatusOr<Endpoint> target = ParseEndpoint(request.target());
    if (!target.ok()) return Annotate(target.status(), "target");
    order.target = *target;
  }
  return order;
}

absl::StatusOr<RebalanceOrder> RebalanceOrderFrom(const v1::RebalanceRequest& request) {
  using Mode = RebalanceOrder::Mode;
  RebalanceOrder order;
  if (!request.service().empty()) order.service = request.service();
  switch (request.mode()) {
    case v1::RebalanceRequest::DRY_RUN:
      order.mode = Mode::kDryRun;
      return order;
    case v1::RebalanceRequest::NOW:
      order.mode = Mode::kNow;
      return order;
    case v1::RebalanceRequest::PAUSE:
      order.mode = Mode::kPause;
      break;
    case v1::RebalanceRequest::RESUME:
      order.mode = Mode::kResume;
      break;
    default:
      return Invalid("mode", absl::StrCat(static_cast<int>(request.mode()), " is not a mode"));
  }
  if (order.service) return Invalid("service", "must be empty: a pause is for all services");
  return order;
}

absl::StatusOr<Duration> WaitFrom(const v1::MoveConnectionRequest& request) {
  return DurationFrom("wait", request.wait(), kMaxWait);
}

}  // namespace unpin
