// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/load.h"

#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/unpin/gen/v1/echo.grpc.pb.h"

namespace unpin::gen {
namespace {

// One RPC; its address is its tag on the completion queue.
class Call {
 public:
  Call(size_t connection, Duration scheduled, Duration deadline)
      : connection_(connection), scheduled_(scheduled) {
    context_.set_deadline(std::chrono::system_clock::now() + deadline);
  }
  virtual ~Call() = default;

  // Takes up an event of the completion queue. True when the RPC has ended.
  virtual bool Proceed(bool ok) = 0;

  size_t connection() const { return connection_; }

  Outcome OutcomeAt(Duration now, const LoadOptions& options) const {
    Outcome outcome{.connection = connection_,
                    .scheduled = scheduled_,
                    .ended = now,
                    .backend = reply_.backend(),
                    .peer = reply_.peer(),
                    .failure = {},
                    .message = {}};
    if (!status_.ok()) {
      outcome.failure =
          absl::StatusCodeToString(static_cast<absl::StatusCode>(status_.error_code()));
      outcome.message = status_.error_message();
    } else if (!IsComplete(options)) {
      outcome.failure = "CORRUPT";
      outcome.message = absl::StrCat("the answer has ", replies_, " messages, the last of ",
                                     reply_.payload().size(), " bytes");
    }
    return outcome;
  }

 protected:
  grpc::ClientContext context_;
  v1::EchoReply reply_;
  uint32_t replies_ = 0;
  grpc::Status status_;

 private:
  bool IsComplete(const LoadOptions& options) const {
    const uint32_t messages = options.pattern == Pattern::kUnary ? 1 : options.messages;
    const uint32_t bytes =
        options.response_bytes > 0 ? options.response_bytes : options.request_bytes;
    return replies_ == messages && reply_.payload().size() == bytes;
  }

  const size_t connection_;
  const Duration scheduled_;
};

class UnaryCall final : public Call {
 public:
  using Call::Call;

  void Start(v1::Echo::Stub& stub, const v1::EchoRequest& request, grpc::CompletionQueue& queue) {
    reader_ = stub.AsyncEcho(&context_, request, &queue);
    reader_->Finish(&reply_, &status_, static_cast<Call*>(this));
  }

  bool Proceed(bool) override {
    replies_ = status_.ok() ? 1 : 0;
    return true;
  }

 private:
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::EchoReply>> reader_;
};

class StreamCall final : public Call {
 public:
  using Call::Call;

  void Start(v1::Echo::Stub& stub, const v1::StreamEchoRequest& request,
             grpc::CompletionQueue& queue) {
    // Not AsyncStreamEcho: it starts before it returns, and an answer would find no reader.
    reader_ = stub.PrepareAsyncStreamEcho(&context_, request, &queue);
    reader_->StartCall(static_cast<Call*>(this));
  }

  bool Proceed(bool ok) override {
    if (stage_ == Stage::kFinishing) return true;
    if (stage_ == Stage::kReading && ok) ++replies_;
    if (ok) {
      stage_ = Stage::kReading;
      reader_->Read(&reply_, static_cast<Call*>(this));
    } else {
      stage_ = Stage::kFinishing;
      reader_->Finish(&status_, static_cast<Call*>(this));
    }
    return false;
  }

 private:
  enum class Stage { kStarting, kReading, kFinishing };
  Stage stage_ = Stage::kStarting;
  std::unique_ptr<grpc::ClientAsyncReader<v1::EchoReply>> reader_;
};

v1::StreamEchoRequest MakeRequest(const LoadOptions& options) {
  v1::StreamEchoRequest request;
  request.mutable_echo()->set_payload(std::string(options.request_bytes, 'u'));
  request.mutable_echo()->set_response_bytes(options.response_bytes);
  request.set_messages(options.messages);
  request.mutable_interval()->set_seconds(options.message_interval.count() / 1'000'000'000);
  request.mutable_interval()->set_nanos(options.message_interval.count() % 1'000'000'000);
  return request;
}

}  // namespace

struct Load::Parts {
  explicit Parts(LoadOptions load_options)
      : options(std::move(load_options)),
        request(MakeRequest(options)),
        recorder(options.rates, options.bucket, options.expected_backends),
        queues(options.threads) {}

  Duration Elapsed() const { return Now() - began; }

  // Takes one request off the number to send; false if none is left to send at `at`.
  bool MaySend(Duration at) {
    if (stopping || at >= options.duration) return false;
    return !options.max_requests || claimed++ < *options.max_requests;
  }

  void Send(size_t connection, Duration scheduled);
  void SendBySchedule();
  void SendFirstOfClosedLoop();
  void Handle(grpc::CompletionQueue& queue);
  void Release();

  const LoadOptions options;
  const v1::StreamEchoRequest request;
  Recorder recorder;
  std::vector<std::unique_ptr<v1::Echo::Stub>> stubs;
  std::vector<grpc::CompletionQueue> queues;
  TimePoint began;
  std::atomic<uint64_t> claimed{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads;

  // How many may still send: RPCs in flight, and the sender while it has more to send.
  std::mutex mutex;
  std::condition_variable changed;
  size_t active = 1;
  std::atomic<bool> all_sent{false};
  Duration sent_for{0};
};

void Load::Parts::Send(size_t connection, Duration scheduled) {
  {
    const std::lock_guard lock(mutex);
    ++active;
  }
  recorder.Sent(connection, scheduled, Elapsed() - scheduled);
  grpc::CompletionQueue& queue = queues[connection % queues.size()];
  v1::Echo::Stub& stub = *stubs[connection];
  if (options.pattern == Pattern::kUnary) {
    (new UnaryCall(connection, scheduled, options.deadline))->Start(stub, request.echo(), queue);
  } else {
    (new StreamCall(connection, scheduled, options.deadline))->Start(stub, request, queue);
  }
}

void Load::Parts::Release() {
  const std::lock_guard lock(mutex);
  if (--active == 0) changed.notify_all();
}

void Load::Parts::SendBySchedule() {
  // The default slack of 50 us would make every request late.
  prctl(PR_SET_TIMERSLACK, 1000);
  Schedule schedule(options.rates, options.spacing, options.seed);
  for (Arrival next = schedule.Next(); MaySend(next.at); next = schedule.Next()) {
    std::unique_lock lock(mutex);
    if (changed.wait_until(lock, began + next.at, [this] { return stopping.load(); })) break;
    lock.unlock();
    Send(next.connection, next.at);
  }
}

void Load::Parts::SendFirstOfClosedLoop() {
  for (size_t stream = 0; stream < options.streams; ++stream) {
    for (size_t connection = 0; connection < stubs.size(); ++connection) {
      if (const Duration now = Elapsed(); MaySend(now)) Send(connection, now);
    }
  }
  std::unique_lock lock(mutex);
  changed.wait_until(lock, began + options.duration, [this] {
    return stopping.load() || (options.max_requests && claimed >= *options.max_requests);
  });
}

void Load::Parts::Handle(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    Call* call = static_cast<Call*>(tag);
    if (!call->Proceed(ok)) continue;
    const Duration now = Elapsed();
    recorder.Ended(call->OutcomeAt(now, options));
    if (options.closed_loop && MaySend(now)) Send(call->connection(), now);
    delete call;
    Release();
  }
}

Load::Load(LoadOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Load::~Load() = default;
bool Load::all_sent() const { return parts_->all_sent; }
Duration Load::Elapsed() const { return parts_->Elapsed(); }
Progress Load::GetProgress() const { return parts_->recorder.GetProgress(); }

absl::Status Load::Open(bool lazily, Duration timeout) {
  const ChannelOptions& options = parts_->options.channel;
  for (size_t i = 0; i < parts_->options.rates.size(); ++i) {
    auto channel = MakeChannel(options);
    if (!channel.ok()) return channel.status();
    if (!lazily) {
      const absl::Status status = AwaitConnected(**channel, options.target, timeout);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(status.message(), " (connection ", i + 1,
                                                        " of ", parts_->options.rates.size(), ")"));
      }
    }
    parts_->stubs.push_back(v1::Echo::NewStub(*channel));
  }
  return absl::OkStatus();
}

void Load::Start() {
  Parts& parts = *parts_;
  parts.began = Now();
  for (grpc::CompletionQueue& queue : parts.queues) {
    parts.threads.emplace_back([&parts, &queue] { parts.Handle(queue); });
  }
  parts.threads.emplace_back([&parts] {
    if (parts.options.closed_loop) {
      parts.SendFirstOfClosedLoop();
    } else {
      parts.SendBySchedule();
    }
    parts.sent_for = std::min(parts.Elapsed(), parts.options.duration);
    parts.all_sent = true;
    parts.Release();
  });
}

v1::LoadReport Load::Finish() {
  Parts& parts = *parts_;
  {
    std::unique_lock lock(parts.mutex);
    parts.stopping = true;
    parts.changed.notify_all();
    parts.changed.wait(lock, [&parts] { return parts.active == 0; });
  }
  for (grpc::CompletionQueue& queue : parts.queues) queue.Shutdown();
  for (std::thread& thread : parts.threads) thread.join();
  return parts.recorder.Report(parts.sent_for);
}

}  // namespace unpin::gen
