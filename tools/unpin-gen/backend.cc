// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/backend.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/unpin/gen/v1/echo.grpc.pb.h"
#include "tools/unpin-gen/channel.h"
#include "tools/unpin-gen/orca_service.h"
#include "tools/unpin-gen/work_queue.h"

namespace unpin::gen {
namespace {

constexpr uint32_t kMaxResponseBytes = 64 << 20;
constexpr uint32_t kMaxWorkers = 1 << 20;

Duration FromProto(const google::protobuf::Duration& d) {
  return std::chrono::seconds(d.seconds()) + std::chrono::nanoseconds(d.nanos());
}

google::protobuf::Duration ToProto(Duration d) {
  google::protobuf::Duration proto;
  proto.set_seconds(d.count() / 1'000'000'000);
  proto.set_nanos(d.count() % 1'000'000'000);
  return proto;
}

std::optional<Duration> OwnTime(const v1::EchoRequest& request) {
  if (!request.has_service_time()) return std::nullopt;
  return FromProto(request.service_time());
}

grpc::Status CheckSize(const v1::EchoRequest& request) {
  if (request.response_bytes() <= kMaxResponseBytes) return grpc::Status::OK;
  return {
      grpc::StatusCode::INVALID_ARGUMENT,
      absl::StrCat("response_bytes ", request.response_bytes(), ": at most ", kMaxResponseBytes)};
}

class EchoService final : public v1::Echo::CallbackService {
 public:
  EchoService(std::string name, WorkQueue& queue) : name_(std::move(name)), queue_(queue) {}

  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context,
                                 const v1::EchoRequest* request, v1::EchoReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const grpc::Status size = CheckSize(*request);
    if (!size.ok()) {
      reactor->Finish(size);
      return reactor;
    }
    FillReply(*context, *request, *reply);
    queue_.Submit(OwnTime(*request), [this, reactor] { reactor->Finish(Conclude()); });
    return reactor;
  }

  grpc::ServerWriteReactor<v1::EchoReply>* StreamEcho(
      grpc::CallbackServerContext* context, const v1::StreamEchoRequest* request) override;

  uint64_t answered() const { return answered_; }

  // From now on requests end as CANCELLED.
  void Abandon() { abandoned_ = true; }

 private:
  class ReplyStream;

  void FillReply(const grpc::CallbackServerContext& context, const v1::EchoRequest& request,
                 v1::EchoReply& reply) const {
    if (request.response_bytes() > 0) {
      reply.mutable_payload()->resize(request.response_bytes(), 'u');
    } else {
      reply.set_payload(request.payload());
    }
    reply.set_backend(name_);
    reply.set_peer(context.peer());
  }

  // The status of a request that has had its service.
  grpc::Status Conclude() {
    if (abandoned_) return {grpc::StatusCode::CANCELLED, "the server is shutting down"};
    ++answered_;
    return grpc::Status::OK;
  }

  const std::string name_;
  WorkQueue& queue_;
  std::atomic<uint64_t> answered_{0};
  std::atomic<bool> abandoned_{false};
};

// Owned by gRPC until OnDone. At most one of its jobs, timers and writes is pending at any time, so no step
// of it runs beside another.
class EchoService::ReplyStream final : public grpc::ServerWriteReactor<v1::EchoReply> {
 public:
  ReplyStream(EchoService& service, const v1::StreamEchoRequest& request)
      : service_(service), left_(request.messages()), interval_(FromProto(request.interval())) {}

  // Separate from the constructor: the job may run, and end the stream, before Start returns.
  void Start(const grpc::CallbackServerContext& context, const v1::EchoRequest& request) {
    const grpc::Status size = CheckSize(request);
    if (!size.ok()) return Finish(size);
    service_.FillReply(context, request, reply_);
    service_.queue_.Submit(OwnTime(request), [this] { WriteNext(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    if (interval_ > Duration(0) && left_ > 0) {
      service_.queue_.RunAt(Now() + interval_, [this] { WriteNext(); });
    } else {
      WriteNext();
    }
  }

  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (left_ == 0 || service_.abandoned_) return Finish(service_.Conclude());
    --left_;
    StartWrite(&reply_);
  }

  EchoService& service_;
  uint32_t left_;
  const Duration interval_;
  v1::EchoReply reply_;
};

grpc::ServerWriteReactor<v1::EchoReply>* EchoService::StreamEcho(
    grpc::CallbackServerContext* context, const v1::StreamEchoRequest* request) {
  auto* stream = new ReplyStream(*this, *request);
  stream->Start(*context, request->echo());
  return stream;
}

class ControlService final : public v1::Control::CallbackService {
 public:
  ControlService(std::string name, WorkQueue& queue) : name_(std::move(name)), queue_(queue) {}

  // Until then changes are refused: gRPC makes the health service when it starts serving.
  void Attach(grpc::HealthCheckServiceInterface* health) { health_ = health; }

  grpc::ServerUnaryReactor* SetBehaviour(grpc::CallbackServerContext* context,
                                         const v1::SetBehaviourRequest* request,
                                         v1::Behaviour* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const grpc::Status status = Check(*request);
    if (status.ok()) {
      Apply(*request);
      Describe(*reply);
    }
    reactor->Finish(status);
    return reactor;
  }

 private:
  grpc::Status Check(const v1::SetBehaviourRequest& request) const {
    if (health_ == nullptr) return {grpc::StatusCode::UNAVAILABLE, "the server is just starting"};
    if (request.has_workers() && (request.workers() == 0 || request.workers() > kMaxWorkers)) {
      return {grpc::StatusCode::INVALID_ARGUMENT,
              absl::StrCat("workers ", request.workers(), ": not in 1..", kMaxWorkers)};
    }
    if (FromProto(request.service_time()) < Duration(0)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "service_time: negative"};
    }
    return grpc::Status::OK;
  }

  void Apply(const v1::SetBehaviourRequest& request) {
    if (request.has_workers()) queue_.SetWorkers(request.workers());
    if (request.has_service_time()) queue_.SetServiceTime(FromProto(request.service_time()));
    if (request.has_serving()) {
      serving_ = request.serving();
      health_.load()->SetServingStatus(request.serving());
    }
  }

  void Describe(v1::Behaviour& reply) {
    const WorkQueue::State state = queue_.GetState();
    reply.set_backend(name_);
    reply.set_workers(state.workers);
    reply.set_unanswered(state.unanswered);
    *reply.mutable_service_time() = ToProto(state.service_time);
    reply.set_serving(serving_);
  }

  const std::string name_;
  WorkQueue& queue_;
  std::atomic<grpc::HealthCheckServiceInterface*> health_{nullptr};
  std::atomic<bool> serving_{true};
};

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(
    const BackendOptions& options) {
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  absl::StatusOr<std::string> certificate = ReadFile(options.tls_certificate);
  if (!certificate.ok()) return certificate.status();
  absl::StatusOr<std::string> key = ReadFile(options.tls_key);
  if (!key.ok()) return key.status();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({*key, *certificate});
  return grpc::SslServerCredentials(tls);
}

int Milliseconds(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

void SetArguments(const BackendOptions& options, grpc::ServerBuilder& builder) {
  // Two servers on one port would share its connections unseen.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  if (options.max_connection_age) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               Milliseconds(*options.max_connection_age));
  }
  if (options.max_connection_age_grace) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               Milliseconds(*options.max_connection_age_grace));
  }
}

}  // namespace

// In order of construction: the queue outlives the services, which outlive the server.
struct Backend::Parts {
  explicit Parts(const BackendOptions& options)
      : queue(options.workers, options.service_time),
        echo(options.name, queue),
        control(options.name, queue),
        orca(queue) {}

  WorkQueue queue;
  EchoService echo;
  ControlService control;
  OrcaService orca;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

Backend::Backend(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Backend::~Backend() { Drain(Duration(0)); }
int Backend::port() const { return parts_->port; }
uint64_t Backend::answered() const { return parts_->echo.answered(); }

absl::StatusOr<std::unique_ptr<Backend>> Backend::Start(const BackendOptions& options) {
  auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();

  auto parts = std::make_unique<Parts>(options);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetArguments(options, builder);
  builder.AddListeningPort(options.listen, *credentials, &parts->port);
  builder.RegisterService(&parts->echo);
  builder.RegisterService(&parts->control);
  if (options.orca) builder.RegisterService(&parts->orca);
  parts->server = builder.BuildAndStart();
  if (!parts->server) {
    return absl::UnavailableError(absl::StrCat(
        "listen on ", options.listen,
        ": gRPC refused (its reason is logged above); is the port taken, the address of "
        "this host, the certificate that of the key?"));
  }
  parts->control.Attach(parts->server->GetHealthCheckService());
  return std::unique_ptr<Backend>(new Backend(std::move(parts)));
}

void Backend::Drain(Duration grace) {
  parts_->server->GetHealthCheckService()->Shutdown();
  parts_->orca.Stop();
  // gRPC waits for handlers even after it has cancelled their calls: give them no reason to linger.
  parts_->queue.RunAt(Now() + grace, [parts = parts_.get()] {
    parts->echo.Abandon();
    parts->queue.Flush();
  });
  parts_->server->Shutdown(std::chrono::system_clock::now() + grace);
}

}  // namespace unpin::gen
