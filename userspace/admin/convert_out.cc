// SPDX-License-Identifier: Apache-2.0
// Model values to responses.
#include <algorithm>

#include "userspace/admin/convert.h"

namespace unpin {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

google::protobuf::Timestamp ToTimestamp(TimePoint time, const ClockPair& now) {
  const int64_t nanos = (now.wall + (time - now.monotonic)).time_since_epoch().count();
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(nanos / kNanosPerSecond);
  timestamp.set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
  return timestamp;
}

// How long ago; a packet seen after `now` was read counts as just now.
google::protobuf::Duration Since(TimePoint time, const ClockPair& now) {
  const int64_t nanos = std::max<int64_t>(0, (now.monotonic - time).count());
  google::protobuf::Duration duration;
  duration.set_seconds(nanos / kNanosPerSecond);
  duration.set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
  return duration;
}

v1::Backend::State ToProto(BackendView::State state) {
  switch (state) {
    case BackendView::State::kServing:
      return v1::Backend::SERVING;
    case BackendView::State::kDraining:
      return v1::Backend::DRAINING;
    case BackendView::State::kRemoved:
      return v1::Backend::REMOVED;
    case BackendView::State::kDown:
      return v1::Backend::DOWN;
    case BackendView::State::kEjected:
      return v1::Backend::EJECTED;
  }
  return v1::Backend::STATE_UNSPECIFIED;
}

v1::Move::State ToProto(MoveState state) {
  switch (state) {
    case MoveState::kPlanned:
      return v1::Move::PLANNED;
    case MoveState::kSent:
      return v1::Move::SENT;
    case MoveState::kAcknowledged:
      return v1::Move::ACKNOWLEDGED;
    case MoveState::kReconnected:
      return v1::Move::RECONNECTED;
    case MoveState::kExpired:
      return v1::Move::EXPIRED;
    case MoveState::kRefused:
      return v1::Move::REFUSED;
  }
  return v1::Move::STATE_UNSPECIFIED;
}

}  // namespace

ClockPair ReadClocks() {
  const TimePoint monotonic = Now();
  return {.monotonic = monotonic, .wall = ToWallTime(monotonic)};
}

v1::AgentStatus ToProto(const StatusView& view, const ClockPair& now) {
  v1::AgentStatus status;
  status.set_version(view.version);
  status.set_layout(view.layout);
  *status.mutable_started() = ToTimestamp(view.started, now);
  status.set_adopted(view.adopted);
  status.set_connections(view.connections);
  status.set_connection_capacity(view.connection_capacity);
  for (const InterfaceView& interface : view.interfaces) {
    v1::Interface* added = status.add_interfaces();
    added->set_name(interface.name);
    added->set_mode(interface.mode);
    added->set_dispatcher(interface.dispatcher);
  }
  return status;
}

v1::Service ToProto(const ServiceView& view) {
  v1::Service service;
  service.set_name(view.spec.name);
  service.set_address(view.spec.vip.address.ToString());
  service.set_port(view.spec.vip.port);
  service.set_snat(view.spec.snat);
  service.set_backends(view.backends);
  service.set_connections(view.connections);
  return service;
}

v1::Backend ToProto(const BackendView& view, const ClockPair& now) {
  v1::Backend backend;
  backend.set_service(view.service);
  backend.set_address(view.endpoint.address.ToString());
  backend.set_port(view.endpoint.port);
  backend.set_weight(view.weight);
  backend.set_state(ToProto(view.state));
  if (view.draining_since)
    *backend.mutable_draining_since() = ToTimestamp(*view.draining_since, now);
  backend.set_connections(view.connections);
  backend.set_open_streams(view.open_streams);
  backend.set_requests_per_second(view.requests_per_second);
  backend.set_bytes_per_second(view.bytes_per_second);
  backend.set_mean_latency_seconds(view.mean_latency_seconds);
  backend.set_load_of_share(view.load_of_share);
  backend.set_trouble(view.trouble);
  return backend;
}

v1::Connection ToProto(const ConnectionView& view, const ClockPair& now) {
  const Connection& seen = view.connection;
  v1::Connection connection;
  connection.set_client(seen.key.client.ToString());
  connection.set_service(view.service);
  connection.set_backend(view.backend.ToString());
  connection.set_protocol(std::string(ToString(seen.protocol)));
  *connection.mutable_age() = Since(seen.created, now);
  *connection.mutable_idle() = Since(seen.last_seen, now);
  connection.set_requests_per_second(view.requests_per_second);
  connection.set_streams_begun(seen.streams_begun);
  connection.set_open_streams(seen.open_streams());
  connection.set_bytes_to_server(seen.bytes_to_server);
  connection.set_bytes_to_client(seen.bytes_to_client);
  connection.set_spliceable(seen.refusal == Refusal::kNone);
  connection.set_not_spliceable(std::string(ToString(seen.refusal)));
  return connection;
}

v1::Move ToProto(const MoveView& view, const ClockPair& now) {
  const Move& made = view.move;
  v1::Move move;
  move.set_id(made.id);
  move.set_client(made.connection.client.ToString());
  move.set_service(view.service);
  move.set_from(view.from.ToString());
  move.set_to(view.to.ToString());
  move.set_state(ToProto(made.state));
  move.set_reason(std::string(ToString(made.reason)));
  move.set_detail(made.detail);
  *move.mutable_planned() = ToTimestamp(made.planned, now);
  if (made.sent) *move.mutable_sent() = ToTimestamp(*made.sent, now);
  if (made.acknowledged) *move.mutable_acknowledged() = ToTimestamp(*made.acknowledged, now);
  if (made.reconnected) *move.mutable_reconnected() = ToTimestamp(*made.reconnected, now);
  if (made.new_client) move.set_new_client(made.new_client->ToString());
  move.set_goaways_sent(made.goaways_sent);
  return move;
}

v1::Event ToProto(const Event& event, const ClockPair& now) {
  v1::Event converted;
  *converted.mutable_time() = ToTimestamp(event.time, now);
  converted.set_type(event.type);
  converted.set_service(event.service);
  converted.set_message(event.message);
  if (event.move) *converted.mutable_move() = ToProto(*event.move, now);
  return converted;
}

v1::RebalanceResponse ToProto(const RebalanceView& view) {
  v1::RebalanceResponse response;
  response.set_paused(view.paused);
  for (const PlannedView& planned : view.moves) {
    v1::PlannedMove* move = response.add_moves();
    move->set_service(planned.service);
    move->set_client(planned.client.ToString());
    move->set_from(planned.from.ToString());
    move->set_to(planned.to.ToString());
    move->set_load(planned.load);
    move->set_load_before(planned.load_before);
    move->set_load_after(planned.load_after);
  }
  for (const std::string& remark : view.remarks) response.add_remarks(remark);
  return response;
}

v1::Counters ToProto(const CountersView& view) {
  v1::Counters counters;
  const auto add = [](const auto& from, auto* to) {
    for (const auto& [name, value] : from) {
      v1::Counter* counter = to->Add();
      counter->set_name(name);
      counter->set_value(value);
    }
  };
  add(view.verdicts, counters.mutable_verdicts());
  add(view.agent, counters.mutable_agent());
  return counters;
}

}  // namespace unpin
