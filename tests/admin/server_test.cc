// SPDX-License-Identifier: Apache-2.0
// The server on a real socket: who may have the path, and the standard services beside ours.
#include "userspace/admin/server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <utility>

#include "proto/unpin/v1/admin.grpc.pb.h"
#include "tests/admin/fake_operations.h"

namespace unpin {
namespace {

using testing::HasSubstr;

struct AdminServerTest : testing::Test {
  AdminServerTest() {
    std::string name = testing::TempDir() + "unpin-admin-XXXXXX";
    folder = mkdtemp(name.data());
    path = folder / "unpind.sock";
  }
  ~AdminServerTest() override { std::filesystem::remove_all(folder); }

  absl::Status StartError() { return AdminServer::Start(agent, path).status(); }
  std::shared_ptr<grpc::Channel> Connect() {
    return grpc::CreateChannel("unix:" + path.string(), grpc::InsecureChannelCredentials());
  }
  grpc::Status CallGetStatus(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    v1::AgentStatus response;
    return v1::Admin::NewStub(channel)->GetStatus(&context, v1::GetStatusRequest(), &response);
  }
  // Binds `path`; a socket of an ended process remains when it is closed.
  int Bind() {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  std::filesystem::path folder;
  std::filesystem::path path;
  FakeOperations agent;
};

TEST_F(AdminServerTest, ServesOnASocketForOwnerAndGroupAndCleansUp) {
  path = folder / "run" / "unpind.sock";  // the folder is created too
  auto server = AdminServer::Start(agent, path);
  ASSERT_TRUE(server.ok()) << server.status();
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  EXPECT_TRUE(CallGetStatus(Connect()).ok());
  (*server)->Stop(Duration::zero());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AdminServerTest, ASecondServerIsRefusedAndTheFirstGoesOn) {
  auto first = AdminServer::Start(agent, path);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status refused = StartError();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(path.string()));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is unpind running already?"));
  EXPECT_TRUE(CallGetStatus(Connect()).ok());
}

TEST_F(AdminServerTest, AStaleSocketIsReplaced) {
  close(Bind());
  ASSERT_TRUE(std::filesystem::exists(path));
  auto server = AdminServer::Start(agent, path);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(CallGetStatus(Connect()).ok());
}

TEST_F(AdminServerTest, ABusySocketIsNotTakenFromWhoeverListens) {
  const int fd = Bind();
  ASSERT_EQ(listen(fd, 0), 0);
  // Twice: the first attempt's connection fills the backlog.
  EXPECT_EQ(StartError().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StartError().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(path));
  close(fd);
}

TEST_F(AdminServerTest, AFileThatIsNoSocketIsKept) {
  std::ofstream(path) << "precious";
  const absl::Status refused = StartError();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is not a socket"));
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST_F(AdminServerTest, APathTooLongOrNowhereIsExplained) {
  path = folder / std::string(108, 'a');
  EXPECT_EQ(StartError().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(StartError().message()), HasSubstr("1 to 107 bytes"));
  path = folder / "no" / "such" / "unpind.sock";
  EXPECT_EQ(StartError().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(StartError().message()), HasSubstr((folder / "no" / "such").string()));
}

TEST_F(AdminServerTest, StopEndsWatchersAndWaitsLongBeforeTheGraceIsOver) {
  auto server = AdminServer::Start(agent, path);
  ASSERT_TRUE(server.ok()) << server.status();
  MoveView planned;
  planned.move.id = 4;
  agent.moves = {planned};
  const auto stub = v1::Admin::NewStub(Connect());
  grpc::ClientContext context;
  const auto reader = stub->WatchEvents(&context, v1::WatchEventsRequest());
  reader->WaitForInitialMetadata();
  auto waiting = std::async(std::launch::async, [&] {
    v1::MoveConnectionRequest request;
    request.set_client("10.0.0.7:40112");
    request.mutable_wait()->set_seconds(60);
    grpc::ClientContext own;
    v1::Move move;
    return stub->MoveConnection(&own, request, &move);
  });
  agent.AwaitCall("move 10.0.0.7:40112 of any to any");

  const TimePoint begin = Now();
  (*server)->Stop(std::chrono::seconds(50));
  EXPECT_LT(Now() - begin, std::chrono::seconds(20));
  EXPECT_TRUE(waiting.get().ok());  // answered how it stands
  v1::Event event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Health and reflection are called by their wire names: their stubs are not part of grpc++'s headers.
TEST_F(AdminServerTest, HealthAndReflectionAreOn) {
  auto server = AdminServer::Start(agent, path);
  ASSERT_TRUE(server.ok()) << server.status();
  grpc::GenericStub stub(Connect());
  const auto call = [&](const char* method, const std::string& request) -> std::string {
    grpc::ClientContext context;
    grpc::Slice slice(request);
    grpc::ByteBuffer sent(&slice, 1), received;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, method, {}, &sent, &received,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    EXPECT_TRUE(status.ok()) << method << ": " << status.error_message();
    grpc::Slice reply;
    if (!status.ok() || !received.TrySingleSlice(&reply).ok()) return "";
    return std::string(reinterpret_cast<const char*>(reply.begin()), reply.size());
  };
  // HealthCheckResponse{status=1: SERVING}; for the whole server, then for the service named in field 1.
  EXPECT_EQ(call("/grpc.health.v1.Health/Check", ""), std::string("\x08\x01", 2));
  EXPECT_EQ(call("/grpc.health.v1.Health/Check", std::string("\x0a\x0eunpin.v1.Admin", 16)),
            std::string("\x08\x01", 2));
  // ServerReflectionRequest{list_services=7: ""}: a stream of one request reads as a unary call.
  EXPECT_THAT(call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                   std::string("\x3a\x00", 2)),
              HasSubstr("unpin.v1.Admin"));
}

}  // namespace
}  // namespace unpin
