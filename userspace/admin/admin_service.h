// SPDX-License-Identifier: Apache-2.0
// The handlers of unpin.v1.Admin: convert, call, convert back.
#pragma once

#include <atomic>

#include "proto/unpin/v1/admin.grpc.pb.h"
#include "userspace/agent/operations.h"

namespace unpin {

class AdminService final : public v1::Admin::Service {
 public:
  explicit AdminService(Operations& operations) : operations_(operations) {}

  // Ends the calls that would go on by themselves: WatchEvents, and moves that are waited for.
  void Stop() { stopping_ = true; }

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::AgentStatus* response) override;
  grpc::Status ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                            v1::ListServicesResponse* response) override;
  grpc::Status AddService(grpc::ServerContext* context, const v1::AddServiceRequest* request,
                          v1::Service* response) override;
  grpc::Status RemoveService(grpc::ServerContext* context, const v1::RemoveServiceRequest* request,
                             v1::RemoveServiceResponse* response) override;
  grpc::Status ListBackends(grpc::ServerContext* context, const v1::ListBackendsRequest* request,
                            v1::ListBackendsResponse* response) override;
  grpc::Status AddBackend(grpc::ServerContext* context, const v1::AddBackendRequest* request,
                          v1::Backend* response) override;
  grpc::Status SetBackend(grpc::ServerContext* context, const v1::SetBackendRequest* request,
                          v1::Backend* response) override;
  grpc::Status RemoveBackend(grpc::ServerContext* context, const v1::RemoveBackendRequest* request,
                             v1::RemoveBackendResponse* response) override;
  grpc::Status DrainBackend(grpc::ServerContext* context, const v1::DrainBackendRequest* request,
                            v1::Backend* response) override;
  grpc::Status UndrainBackend(grpc::ServerContext* context,
                              const v1::UndrainBackendRequest* request,
                              v1::Backend* response) override;
  grpc::Status ListConnections(grpc::ServerContext* context,
                               const v1::ListConnectionsRequest* request,
                               v1::ListConnectionsResponse* response) override;
  grpc::Status MoveConnection(grpc::ServerContext* context,
                              const v1::MoveConnectionRequest* request,
                              v1::Move* response) override;
  grpc::Status ListMoves(grpc::ServerContext* context, const v1::ListMovesRequest* request,
                         v1::ListMovesResponse* response) override;
  grpc::Status Rebalance(grpc::ServerContext* context, const v1::RebalanceRequest* request,
                         v1::RebalanceResponse* response) override;
  grpc::Status GetCounters(grpc::ServerContext* context, const v1::GetCountersRequest* request,
                           v1::Counters* response) override;
  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::Event>* writer) override;

 private:
  // The caller has gone or the server stops.
  bool IsOver(const grpc::ServerContext& context) const {
    return stopping_ || context.IsCancelled();
  }
  // The move as it has ended, or as it stands after `wait`.
  MoveView AwaitEnd(MoveView view, Duration wait, EventQueue& events,
                    const grpc::ServerContext& context);

  Operations& operations_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace unpin
