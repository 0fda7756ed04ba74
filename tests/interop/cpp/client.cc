// SPDX-License-Identifier: Apache-2.0
// Interop client in grpc C++: opens connections, runs one pattern on each, prints a Report as JSON.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/interop/cpp/payload.h"
#include "tests/interop/cpp/recorder.h"
#include "tests/interop/echo.grpc.pb.h"

namespace unpin::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Options {
  std::string target;
  std::string pattern = "unary";
  int connections = 8;
  double seconds = 5;
  uint32_t seed = 1;
};

// SIGTERM: no RPC begins any more, what is under way still ends.
volatile std::sig_atomic_t stopped = 0;

constexpr milliseconds kPause(4);
constexpr std::chrono::seconds kDeadline(20);

class Connection {
 public:
  Connection(const Options& options, uint32_t index, Recorder& recorder)
      : index_(index), random_(options.seed * 1000 + index), recorder_(recorder) {
    grpc::ChannelArguments arguments;
    // Otherwise all channels to one target share one TCP connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(8 << 20);
    stub_ = Interop::NewStub(
        grpc::CreateCustomChannel(options.target, grpc::InsecureChannelCredentials(), arguments));
  }

  void Echo() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    const EchoRequest request = NextEcho();
    EchoReply reply;
    const SteadyTime begun = steady_clock::now();
    const grpc::Status status = stub_->Echo(&context, request, &reply);
    Record(begun, status, request, reply);
  }

  // Returns at once; Drain() waits for the answers.
  void BeginEcho() {
    struct Call {
      grpc::ClientContext context;
      EchoRequest request;
      EchoReply reply;
      SteadyTime begun = steady_clock::now();
    };
    const auto call = std::make_shared<Call>();
    call->request = NextEcho();
    call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    stub_->async()->Echo(&call->context, &call->request, &call->reply,
                         [this, call](const grpc::Status& status) {
                           Record(call->begun, status, call->request, call->reply);
                           const std::lock_guard lock(mutex_);
                           --running_;
                           ended_.notify_all();
                         });
  }

  void Drain() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }

  void Stream(uint32_t count, uint32_t size, uint32_t interval_ms) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    StreamRequest request;
    request.set_count(count);
    request.set_size(size);
    request.set_interval_ms(interval_ms);
    request.set_seed(Random());
    Recorder::Outcome outcome;
    outcome.connection = index_;
    outcome.begun = steady_clock::now();
    const auto reader = stub_->Stream(&context, request);
    uint32_t received = 0;
    for (Chunk chunk; reader->Read(&chunk); ++received) {
      if (outcome.server.empty()) outcome.server = chunk.server();
      if (chunk.server() != outcome.server) outcome.split = true;
      if (chunk.payload() != Payload(request.seed() + received, size)) outcome.corrupt = true;
    }
    outcome.status = reader->Finish();
    if (outcome.status.ok() && received != count) outcome.corrupt = true;
    recorder_.Add(outcome);
  }

  uint32_t Random() {
    const std::lock_guard lock(mutex_);
    return random_();
  }

 private:
  // Sizes from 1 byte to 32 KiB, small ones as likely as large ones.
  EchoRequest NextEcho() {
    EchoRequest request;
    request.set_seed(Random());
    const uint32_t size = 1 + Random() % (1u << (Random() % 16));
    request.set_payload(std::string(Payload(request.seed(), size)));
    return request;
  }

  void Record(SteadyTime begun, const grpc::Status& status, const EchoRequest& request,
              const EchoReply& reply) {
    Recorder::Outcome outcome;
    outcome.connection = index_;
    outcome.begun = begun;
    outcome.status = status;
    outcome.server = reply.server();
    outcome.corrupt = status.ok() && reply.payload() != request.payload();
    recorder_.Add(outcome);
  }

  const uint32_t index_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
  std::mt19937 random_;
  Recorder& recorder_;
  std::unique_ptr<Interop::Stub> stub_;
};

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options),
        end_(steady_clock::now() + milliseconds(static_cast<int64_t>(options.seconds * 1000))) {
    for (int i = 0; i < options.connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(options, i, recorder_));
    }
  }

  Report Run() {
    std::vector<std::thread> threads;
    for (const auto& connection : connections_) Start(*connection, threads);
    for (std::thread& thread : threads) thread.join();
    for (const auto& connection : connections_) connection->Drain();
    return recorder_.Finish();
  }

 private:
  void Start(Connection& connection, std::vector<std::thread>& threads) {
    const auto repeat = [&](auto action) {
      threads.emplace_back([this, action] {
        while (steady_clock::now() < end_ && stopped == 0) {
          action();
          std::this_thread::sleep_for(kPause);
        }
      });
    };
    Connection* c = &connection;
    if (options_.pattern == "async") {
      repeat([c] { c->BeginEcho(); });
    } else if (options_.pattern == "stream") {
      repeat([c] { c->Stream(20, 1 + c->Random() % 20000, c->Random() % 3); });
    } else if (options_.pattern == "bulk") {
      repeat([c] { c->Stream(2, kMaxPayload, 0); });
    } else {
      repeat([c] { c->Echo(); });
      if (options_.pattern == "long") repeat([c] { c->Stream(100, 1000, 20); });
    }
  }

  const Options options_;
  const SteadyTime end_;
  Recorder recorder_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

int Run(int argc, char** argv) {
  CLI::App app("interop client in grpc C++");
  Options options;
  app.add_option("--target", options.target)->required();
  app.add_option("--pattern", options.pattern)
      ->check(CLI::IsMember({"unary", "async", "stream", "bulk", "long"}));
  app.add_option("--connections", options.connections);
  app.add_option("--seconds", options.seconds);
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);

  std::signal(SIGTERM, [](int) { stopped = 1; });
  const Report report = Client(options).Run();
  std::string json;
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  print.always_print_primitive_fields = true;
  if (!google::protobuf::util::MessageToJsonString(report, &json, print).ok()) return 1;
  std::cout << json << std::endl;
  return 0;
}

}  // namespace
}  // namespace unpin::interop

int main(int argc, char** argv) { return unpin::interop::Run(argc, argv); }
