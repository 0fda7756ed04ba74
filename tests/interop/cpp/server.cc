// SPDX-License-Identifier: Apache-2.0
// Interop server in grpc C++.
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "tests/interop/cpp/payload.h"
#include "tests/interop/echo.grpc.pb.h"

namespace unpin::interop {
namespace {

class Server final : public Interop::Service {
 public:
  explicit Server(std::string name) : name_(std::move(name)) {}

  grpc::Status Echo(grpc::ServerContext*, const EchoRequest* request, EchoReply* reply) override {
    if (request->payload().size() > kMaxPayload ||
        request->payload() != Payload(request->seed(), request->payload().size())) {
      return {grpc::StatusCode::DATA_LOSS, "the request's payload arrived altered"};
    }
    reply->set_payload(request->payload());
    reply->set_server(name_);
    return grpc::Status::OK;
  }

  grpc::Status Stream(grpc::ServerContext* context, const StreamRequest* request,
                      grpc::ServerWriter<Chunk>* writer) override {
    if (request->size() > kMaxPayload) return {grpc::StatusCode::INVALID_ARGUMENT, "size"};
    Chunk chunk;
    chunk.set_server(name_);
    for (uint32_t i = 0; i < request->count() && !context->IsCancelled(); ++i) {
      chunk.set_payload(std::string(Payload(request->seed() + i, request->size())));
      if (!writer->Write(chunk)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(request->interval_ms()));
    }
    return grpc::Status::OK;
  }

 private:
  const std::string name_;
};

int Run(int argc, char** argv) {
  CLI::App app("interop server in grpc C++");
  std::string name;
  int port = 50051;
  int max_age_ms = 0;
  app.add_option("--name", name)->required();
  app.add_option("--port", port);
  app.add_option("--max-age-ms", max_age_ms, "send GOAWAYs like any server with MaxConnectionAge");
  CLI11_PARSE(app, argc, argv);

  Server service(name);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("0.0.0.0:" + std::to_string(port), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  if (max_age_ms > 0) builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, max_age_ms);
  const auto server = builder.BuildAndStart();
  if (!server) {
    std::cerr << "listen on port " << port << ": refused, see the log above\n";
    return 1;
  }
  std::cout << "listening" << std::endl;
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace unpin::interop

int main(int argc, char** argv) { return unpin::interop::Run(argc, argv); }
