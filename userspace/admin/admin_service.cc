// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/admin_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "userspace/admin/convert.h"
#include "userspace/admin/paging.h"

namespace unpin {
namespace {

constexpr size_t kDefaultMoves = 100;
// The synchronous API cannot wake a handler when its caller goes away, so a waiting one looks up
// this often.
constexpr Duration kLookUpInterval = std::chrono::milliseconds(100);

grpc::Status ToGrpc(const absl::Status& status) {
  // The two enums have the same values by design.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

grpc::Status Answer(const absl::StatusOr<BackendView>& backend, v1::Backend* response) {
  if (!backend.ok()) return ToGrpc(backend.status());
  *response = ToProto(*backend, ReadClocks());
  return grpc::Status::OK;
}

std::optional<std::string> IfSet(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(name);
}

}  // namespace

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                                     v1::AgentStatus* response) {
  const absl::StatusOr<StatusView> status = operations_.GetStatus();
  if (!status.ok()) return ToGrpc(status.status());
  *response = ToProto(*status, ReadClocks());
  return grpc::Status::OK;
}

grpc::Status AdminService::ListServices(grpc::ServerContext*, const v1::ListServicesRequest*,
                                        v1::ListServicesResponse* response) {
  const absl::StatusOr<std::vector<ServiceView>> services = operations_.ListServices();
  if (!services.ok()) return ToGrpc(services.status());
  for (const ServiceView& service : *services) *response->add_services() = ToProto(service);
  return grpc::Status::OK;
}

grpc::Status AdminService::AddService(grpc::ServerContext*, const v1::AddServiceRequest* request,
                                      v1::Service* response) {
  const absl::StatusOr<ServiceSpec> spec = ServiceFrom(*request);
  if (!spec.ok()) return ToGrpc(spec.status());
  const absl::StatusOr<ServiceView> service = operations_.AddService(*spec);
  if (!service.ok()) return ToGrpc(service.status());
  *response = ToProto(*service);
  return grpc::Status::OK;
}

grpc::Status AdminService::RemoveService(grpc::ServerContext*,
                                         const v1::RemoveServiceRequest* request,
                                         v1::RemoveServiceResponse*) {
  const absl::StatusOr<std::string> name = ServiceNameFrom(*request);
  if (!name.ok()) return ToGrpc(name.status());
  return ToGrpc(operations_.RemoveService(*name));
}

grpc::Status AdminService::ListBackends(grpc::ServerContext*,
                                        const v1::ListBackendsRequest* request,
                                        v1::ListBackendsResponse* response) {
  const absl::StatusOr<std::vector<BackendView>> backends =
      operations_.ListBackends(IfSet(request->service()));
  if (!backends.ok()) return ToGrpc(backends.status());
  const ClockPair now = ReadClocks();
  for (const BackendView& backend : *backends) *response->add_backends() = ToProto(backend, now);
  return grpc::Status::OK;
}

grpc::Status AdminService::AddBackend(grpc::ServerContext*, const v1::AddBackendRequest* request,
                                      v1::Backend* response) {
  const absl::StatusOr<BackendRef> ref = BackendFrom(*request);
  if (!ref.ok()) return ToGrpc(ref.status());
  const absl::StatusOr<uint32_t> weight = WeightFrom(*request);
  if (!weight.ok()) return ToGrpc(weight.status());
  const BackendSpec spec{.endpoint = ref->endpoint, .weight = *weight};
  return Answer(operations_.AddBackend(ref->service, spec), response);
}

grpc::Status AdminService::SetBackend(grpc::ServerContext*, const v1::SetBackendRequest* request,
                                      v1::Backend* response) {
  const absl::StatusOr<BackendRef> ref = BackendFrom(*request);
  if (!ref.ok()) return ToGrpc(ref.status());
  const absl::StatusOr<uint32_t> weight = WeightFrom(*request);
  if (!weight.ok()) return ToGrpc(weight.status());
  return Answer(operations_.SetBackendWeight(ref->service, ref->endpoint, *weight), response);
}

grpc::Status AdminService::RemoveBackend(grpc::ServerContext*,
                                         const v1::RemoveBackendRequest* request,
                                         v1::RemoveBackendResponse*) {
  const absl::StatusOr<BackendRef> ref = BackendFrom(*request);
  if (!ref.ok()) return ToGrpc(ref.status());
  return ToGrpc(operations_.RemoveBackend(ref->service, ref->endpoint));
}

grpc::Status AdminService::DrainBackend(grpc::ServerContext*,
                                        const v1::DrainBackendRequest* request,
                                        v1::Backend* response) {
  const absl::StatusOr<BackendRef> ref = BackendFrom(*request);
  if (!ref.ok()) return ToGrpc(ref.status());
  const absl::StatusOr<Duration> window = WindowFrom(*request);
  if (!window.ok()) return ToGrpc(window.status());
  return Answer(operations_.DrainBackend(ref->service, ref->endpoint, *window), response);
}

grpc::Status AdminService::UndrainBackend(grpc::ServerContext*,
                                          const v1::UndrainBackendRequest* request,
                                          v1::Backend* response) {
  const absl::StatusOr<BackendRef> ref = BackendFrom(*request);
  if (!ref.ok()) return ToGrpc(ref.status());
  return Answer(operations_.UndrainBackend(ref->service, ref->endpoint), response);
}

grpc::Status AdminService::ListConnections(grpc::ServerContext*,
                                           const v1::ListConnectionsRequest* request,
                                           v1::ListConnectionsResponse* response) {
  const absl::StatusOr<ConnectionFilter> filter = FilterFrom(*request);
  if (!filter.ok()) return ToGrpc(filter.status());
  const absl::StatusOr<PageRequest> page_request = PageRequestFrom(*request);
  if (!page_request.ok()) return ToGrpc(page_request.status());
  absl::StatusOr<std::vector<ConnectionView>> connections = operations_.ListConnections(*filter);
  if (!connections.ok()) return ToGrpc(connections.status());

  const Page page = TakePage(*std::move(connections), *page_request);
  const ClockPair now = ReadClocks();
  for (const ConnectionView& connection : page.connections) {
    *response->add_connections() = ToProto(connection, now);
  }
  response->set_next_page_token(page.next_token);
  return grpc::Status::OK;
}

grpc::Status AdminService::MoveConnection(grpc::ServerContext* context,
                                          const v1::MoveConnectionRequest* request,
                                          v1::Move* response) {
  const absl::StatusOr<MoveOrder> order = MoveOrderFrom(*request);
  if (!order.ok()) return ToGrpc(order.status());
  const absl::StatusOr<Duration> wait = WaitFrom(*request);
  if (!wait.ok()) return ToGrpc(wait.status());

  // Watching begins before the move does, so that none of its changes is missed.
  const std::shared_ptr<EventQueue> events = operations_.Watch(false);
  absl::StatusOr<MoveView> move = operations_.MoveConnection(*order);
  if (!move.ok()) return ToGrpc(move.status());
  *response = ToProto(AwaitEnd(*std::move(move), *wait, *events, *context), ReadClocks());
  return grpc::Status::OK;
}

MoveView AdminService::AwaitEnd(MoveView view, Duration wait, EventQueue& events,
                                const grpc::ServerContext& context) {
  const TimePoint deadline = Now() + wait;
  while (!view.move.ended() && !IsOver(context)) {
    const Duration left = deadline - Now();
    if (left <= Duration::zero()) break;
    events.Pop(std::min(left, kLookUpInterval));
    absl::StatusOr<MoveView> found = operations_.FindMove(view.move.id);
    if (!found.ok()) break;  // forgotten: what was last seen of it is all there is
    view = *std::move(found);
  }
  return view;
}

grpc::Status AdminService::ListMoves(grpc::ServerContext*, const v1::ListMovesRequest* request,
                                     v1::ListMovesResponse* response) {
  const size_t limit = request->limit() > 0 ? request->limit() : kDefaultMoves;
  const absl::StatusOr<std::vector<MoveView>> moves =
      operations_.ListMoves(IfSet(request->service()), limit);
  if (!moves.ok()) return ToGrpc(moves.status());
  const ClockPair now = ReadClocks();
  for (const MoveView& move : *moves) *response->add_moves() = ToProto(move, now);
  return grpc::Status::OK;
}

grpc::Status AdminService::Rebalance(grpc::ServerContext*, const v1::RebalanceRequest* request,
                                     v1::RebalanceResponse* response) {
  const absl::StatusOr<RebalanceOrder> order = RebalanceOrderFrom(*request);
  if (!order.ok()) return ToGrpc(order.status());
  const absl::StatusOr<RebalanceView> view = operations_.Rebalance(*order);
  if (!view.ok()) return ToGrpc(view.status());
  *response = ToProto(*view);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetCounters(grpc::ServerContext*, const v1::GetCountersRequest*,
                                       v1::Counters* response) {
  const absl::StatusOr<CountersView> counters = operations_.GetCounters();
  if (!counters.ok()) return ToGrpc(counters.status());
  *response = ToProto(*counters);
  return grpc::Status::OK;
}

grpc::Status AdminService::WatchEvents(grpc::ServerContext* context,
                                       const v1::WatchEventsRequest* request,
                                       grpc::ServerWriter<v1::Event>* writer) {
  const std::shared_ptr<EventQueue> events = operations_.Watch(request->connections());
  // Tells the caller that no event from here on will be missed.
  writer->SendInitialMetadata();
  while (!IsOver(*context)) {
    const std::optional<Event> event = events->Pop(kLookUpInterval);
    if (event && !writer->Write(ToProto(*event, ReadClocks()))) break;
  }
  if (stopping_) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "unpind is stopping");
  return grpc::Status::OK;
}

}  // namespace unpin
