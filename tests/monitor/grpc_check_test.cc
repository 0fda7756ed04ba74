// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1 against real servers.
#include "userspace/monitor/grpc_check.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/monitor/listener.h"
#include "tests/monitor/watcher.h"

namespace unpin {
namespace {

namespace health = grpc::health::v1;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testkit::Listener;
using testkit::TargetAt;
using testkit::Watcher;

// Knows the services "" and "shop".
class HealthService final : public health::Health::Service {
 public:
  void Set(health::HealthCheckResponse::ServingStatus status) { status_ = status; }

  grpc::Status Check(grpc::ServerContext*, const health::HealthCheckRequest* request,
                     health::HealthCheckResponse* response) override {
    if (request->service() != "" && request->service() != "shop")
      return {grpc::StatusCode::NOT_FOUND, "unknown service"};
    response->set_status(status_);
    return grpc::Status::OK;
  }

 private:
  std::atomic<health::HealthCheckResponse::ServingStatus> status_ =
      health::HealthCheckResponse::SERVING;
};

class Server {
 public:
  explicit Server(grpc::Service* service, int port = 0) : port_(port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }

  uint16_t port() const { return static_cast<uint16_t>(port_); }

 private:
  int port_;
  std::unique_ptr<grpc::Server> server_;
};

HealthTarget GrpcTarget(uint16_t port, const std::string& service = "") {
  HealthTarget target = TargetAt(port, HealthSettings::Kind::kGrpc);
  target.settings.service = service;
  return target;
}

TEST(GrpcCheck, ServingIsUp) {
  HealthService service;
  Server server(&service);
  Watcher watcher({GrpcTarget(server.port(), "shop")});
  for (const ProbeResult& result : watcher.Next(3)) {
    EXPECT_EQ(result.found, Health::kUp) << result.detail;
  }
}

TEST(GrpcCheck, NotServingIsUnwellBeyondDoubtUntilItServesAgain) {
  HealthService service;
  service.Set(health::HealthCheckResponse::NOT_SERVING);
  Server server(&service);
  Watcher watcher({GrpcTarget(server.port())});
  const ProbeResult result = watcher.NextOne();
  EXPECT_EQ(result.found, Health::kUnwell);
  EXPECT_TRUE(result.decisive);
  EXPECT_EQ(result.detail, "health check: NOT_SERVING");
  service.Set(health::HealthCheckResponse::SERVING);
  EXPECT_TRUE(watcher.RunUntil([&] { return watcher.results().back().ok(); }));
}

TEST(GrpcCheck, AServiceTheServerDoesNotKnowIsUnwell) {
  HealthService service;
  Server server(&service);
  Watcher watcher({GrpcTarget(server.port(), "pets")});
  const ProbeResult result = watcher.NextOne();
  EXPECT_EQ(result.found, Health::kUnwell);
  EXPECT_FALSE(result.decisive);
  EXPECT_THAT(result.detail, HasSubstr("unknown service"));
}

class NoHealth final : public health::Health::Service {};

TEST(GrpcCheck, AServerWithoutHealthServiceIsUnwell) {
  NoHealth service;
  Server server(&service);
  Watcher watcher({GrpcTarget(server.port())});
  EXPECT_EQ(watcher.NextOne().found, Health::kUnwell);
}

TEST(GrpcCheck, AClosedPortIsRefusing) {
  Listener listener;
  listener.Close();
  Watcher watcher({GrpcTarget(listener.port())});
  EXPECT_EQ(watcher.NextOne().found, Health::kRefusing);
}

TEST(GrpcCheck, AProcessThatHangsIsSilent) {
  Listener listener;
  HealthTarget target = GrpcTarget(listener.port());
  target.settings.timeout = milliseconds(100);
  Watcher watcher({target});
  EXPECT_EQ(watcher.NextOne().found, Health::kSilent);
}

// The channel's connection is to the process that hung, or to a host that has rebooted since.
TEST(GrpcCheck, ABackendThatIsReplacedIsFoundThoughTheOldConnectionNeverEnds) {
  Listener listener;
  HealthTarget target = GrpcTarget(listener.port());
  target.settings.timeout = milliseconds(200);
  Watcher watcher({target});
  ASSERT_EQ(watcher.NextOne().found, Health::kSilent);
  std::vector<UniqueFd> mute;  // a probe's connection and the channel's, at least
  for (int i = 0; i < 2; ++i) mute.push_back(listener.Accept());
  listener.Close();
  HealthService service;
  Server server(&service, listener.port());
  ASSERT_EQ(server.port(), listener.port());
  const TimePoint begun = Now();
  EXPECT_TRUE(watcher.RunUntil([&] { return watcher.results().back().ok(); }));
  EXPECT_LT(Now() - begun, std::chrono::seconds(5));
}

TEST(GrpcCheck, EndsWhileACallIsUnderWay) {
  Listener listener;
  HealthTarget target = GrpcTarget(listener.port());
  target.settings.timeout = std::chrono::minutes(1);
  Watcher watcher({target});
  UniqueFd probe, channel;
  watcher.RunUntil([&, turns = 0]() mutable { return ++turns > 3; });
  watcher.monitor().SetTargets({});
  ASSERT_TRUE(watcher.monitor().OnReadable(Now()).ok());
  EXPECT_EQ(watcher.monitor().NextDue(), TimePoint::max());
}

}  // namespace
}  // namespace unpin
