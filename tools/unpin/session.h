// SPDX-License-Identifier: Apache-2.0
// Calls to unpind whose answers are printed: as a table, as JSON, once or again and again.
#pragma once

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include "tools/unpin/cli.h"
#include "tools/unpin/views.h"

namespace unpin {

struct Flags {
  std::string socket = "/run/unpin/unpind.sock";
  bool json = false;
  double watch = 0;  // seconds; 0: once
  std::string service, client, backend, protocol, name, address, target, window, wait;
  bool now = false, pause = false, resume = false, dry_run = false;
  bool no_snat = false, spliceable = false, not_spliceable = false, connections = false;
  int32_t weight = 100;
  uint32_t limit = 100;
};

// Every function returns an exit code.
class Session {
 public:
  using Stub = v1::Admin::StubInterface;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  Session(const Flags& flags, const CliEnvironment& environment)
      : flags_(flags), environment_(environment), stub_(environment.connect(flags.socket)) {}

  template <typename Request, typename Response>
  int Show(Method<Request, Response> method, const Request& request) {
    return Repeat([&] {
      Response response;
      const int failed = Call(method, request, response);
      if (failed == 0) Print(response);
      return failed;
    });
  }

  int ShowTop(const v1::ListBackendsRequest& request) {
    return Repeat([&] {
      v1::ListBackendsResponse backends;
      v1::ListMovesResponse moves;
      v1::ListMovesRequest recent;
      recent.set_service(request.service());
      if (const int failed = Call(&Stub::ListBackends, request, backends)) return failed;
      if (const int failed = Call(&Stub::ListMoves, recent, moves)) return failed;
      if (flags_.json) Json(backends);
      else environment_.out << TopText(backends, moves) << std::flush;
      return 0;
    });
  }

  int ShowConnections(v1::ListConnectionsRequest request) {
    return Repeat([&] {
      v1::ListConnectionsResponse all;
      do {
        v1::ListConnectionsResponse page;
        request.set_page_token(all.next_page_token());
        if (const int failed = Call(&Stub::ListConnections, request, page)) return failed;
        all.mutable_connections()->MergeFrom(page.connections());
        all.set_next_page_token(page.next_page_token());
      } while (!all.next_page_token().empty());
      Print(all);
      return 0;
    });
  }

  // A verb: tell(answer) says what was done.
  template <typename Request, typename Response, typename Tell>
  int Do(Method<Request, Response> method, const Request& request, Tell tell) {
    Response response;
    if (const int failed = Call(method, request, response)) return failed;
    if (flags_.json) Json(response);
    else environment_.out << tell(response);
    return 0;
  }

  template <typename Request, typename Response>
  int Do(Method<Request, Response> method, const Request& request, const std::string& done) {
    return Do(method, request, [&](const Response&) { return done + "\n"; });
  }

  int ShowEvents(const v1::WatchEventsRequest& request) {
    grpc::ClientContext context;
    const auto reader = stub_->WatchEvents(&context, request);
    v1::Event event;
    while (reader->Read(&event)) Print(event);
    return Judge(reader->Finish());
  }

  int Usage(const std::string& what) {
    environment_.err << "unpin: " << what << "\n";
    return 2;
  }

 private:
  template <typename Once>
  int Repeat(Once once) {
    while (true) {
      if (flags_.watch > 0) environment_.out << "\x1b[H\x1b[2J";
      if (const int failed = once()) return failed;
      if (flags_.watch == 0) return 0;
      std::this_thread::sleep_for(std::chrono::duration<double>(flags_.watch));
    }
  }

  template <typename Request, typename Response>
  int Call(Method<Request, Response> method, const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    return Judge(((*stub_).*method)(&context, request, &response));
  }

  int Judge(const grpc::Status& status) {
    if (status.ok()) return 0;
    environment_.err << "unpin: " << status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      environment_.err << " (is unpind running, is " << flags_.socket << " its socket, may you open it?)";
    }
    environment_.err << "\n";
    return 1;
  }

  template <typename Message>
  void Print(const Message& message) {
    if (flags_.json) Json(message);
    else environment_.out << TextOf(message) << std::flush;
  }

  void Json(const google::protobuf::Message& message) {
    google::protobuf::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    options.preserve_proto_field_names = true;
    std::string text;
    (void)google::protobuf::util::MessageToJsonString(message, &text, options);
    environment_.out << text << std::endl;
  }

  const Flags& flags_;
  const CliEnvironment& environment_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace unpin
