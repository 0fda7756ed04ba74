// SPDX-License-Identifier: Apache-2.0
#include "userspace/monitor/grpc_check.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"

namespace unpin {
namespace {

namespace health = grpc::health::v1;

ProbeResult Judge(const HealthTarget& target, const grpc::Status& status,
                  const health::HealthCheckResponse& response) {
  ProbeResult result = {
      .backend = target.backend, .found = Health::kUp, .decisive = false, .detail = {}};
  if (!status.ok()) {
    // The process has just accepted a connection: its host is there.
    const bool silent = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    result.found = silent ? Health::kSilent : Health::kUnwell;
    result.detail = absl::StrCat("health check: ", status.error_message());
    return result;
  }
  if (response.status() == health::HealthCheckResponse::SERVING) return result;
  result.found = Health::kUnwell;
  result.decisive = true;  // the server itself says so
  result.detail = absl::StrCat("health check: ",
                               health::HealthCheckResponse::ServingStatus_Name(response.status()));
  return result;
}

// A connection may take as long as the whole call: it is the call that ends first.
std::shared_ptr<grpc::Channel> ChannelTo(const HealthTarget& target) {
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(target.settings.timeout);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(std::min<long>(2 * timeout.count(), 600000)));
  return grpc::CreateCustomChannel(target.endpoint.ToString(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

struct GrpcCheck::Stub {
  std::unique_ptr<health::Health::Stub> health;
};

struct GrpcCheck::Call {
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  health::HealthCheckResponse response;
  absl::Mutex mutex;
  bool is_over = false;
};

GrpcCheck::GrpcCheck(const HealthTarget& target)
    : target_(target), stub_(std::make_unique<Stub>()) {
  Reconnect();
}

void GrpcCheck::Reconnect() { stub_->health = health::Health::NewStub(ChannelTo(target_)); }

GrpcCheck::~GrpcCheck() {
  if (!call_) return;
  call_->context.TryCancel();
  absl::MutexLock lock(&call_->mutex);
  call_->mutex.Await(absl::Condition(&call_->is_over));
}

void GrpcCheck::Start(std::function<void(const ProbeResult&)> done) {
  call_ = std::make_shared<Call>();
  call_->request.set_service(target_.settings.service);
  call_->context.set_deadline(std::chrono::system_clock::now() + target_.settings.timeout);
  stub_->health->async()->Check(
      &call_->context, &call_->request, &call_->response,
      [call = call_, target = target_, done = std::move(done)](const grpc::Status& status) {
        done(Judge(target, status, call->response));
        absl::MutexLock lock(&call->mutex);
        call->is_over = true;
      });
}

}  // namespace unpin
