// SPDX-License-Identifier: Apache-2.0
// The handlers over an in-process channel, against an agent that answers what it is told to.
#include "userspace/admin/admin_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/admin/fake_operations.h"

namespace unpin {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

const Endpoint kVip{IpAddress{0x0a090001}, 50051};
const Endpoint kBackend{IpAddress{0x0a010102}, 50051};

MoveView MoveIn(MoveState state) {
  MoveView view;
  view.move.id = 4;
  view.move.connection = {{IpAddress{0x0a000007}, 40112}, kVip};
  view.move.state = state;
  view.move.planned = Now();
  view.service = "greeter";
  return view;
}

struct AdminServiceTest : testing::Test {
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    stub = v1::Admin::NewStub(server->InProcessChannel({}));
  }
  void TearDown() override {
    service.Stop();
    server->Shutdown();
  }

  v1::MoveConnectionRequest MoveRequest(int wait_seconds) {
    v1::MoveConnectionRequest request;
    request.set_client("10.0.0.7:40112");
    request.mutable_wait()->set_seconds(wait_seconds);
    return request;
  }

  FakeOperations agent;
  AdminService service{agent};
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::Admin::Stub> stub;
  grpc::ClientContext context;
};

TEST_F(AdminServiceTest, ErrorsKeepCodeAndMessage) {
  agent.failure = absl::ResourceExhaustedError("add service a: 1024 services are the most");
  v1::AddServiceRequest request;
  request.mutable_service()->set_name("a");
  request.mutable_service()->set_address("10.9.0.1");
  request.mutable_service()->set_port(50051);
  v1::Service response;
  const grpc::Status status = stub->AddService(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "add service a: 1024 services are the most");
}

TEST_F(AdminServiceTest, BadSyntaxNeverReachesTheAgent) {
  v1::SetBackendRequest request;
  request.set_service("greeter");
  request.set_address("10.1.1.2");
  request.set_port(50051);
  request.set_weight(-1);
  v1::Backend response;
  const grpc::Status status = stub->SetBackend(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "weight: -1 is not in 0..65535");
  EXPECT_THAT(agent.Calls(), ElementsAre());
}

TEST_F(AdminServiceTest, EveryChangeReachesTheAgentAsAsked) {
  const auto call = [&](auto method, auto request, auto response) {
    grpc::ClientContext own;
    const grpc::Status status = ((*stub).*method)(&own, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  const auto backend = [](auto request) {
    request.set_service("greeter");
    request.set_address("10.1.1.2");
    request.set_port(50051);
    return request;
  };
  v1::AddServiceRequest add;
  add.mutable_service()->set_name("greeter");
  add.mutable_service()->set_address("10.9.0.1");
  add.mutable_service()->set_port(50051);
  v1::SetBackendRequest set;
  set.set_weight(7);
  v1::DrainBackendRequest drain;
  drain.mutable_window()->set_seconds(2);
  v1::RemoveServiceRequest remove;
  remove.set_name("greeter");
  using Stub = v1::Admin::Stub;
  call(&Stub::AddService, add, v1::Service());
  call(&Stub::AddBackend, backend(v1::AddBackendRequest()), v1::Backend());
  call(&Stub::SetBackend, backend(set), v1::Backend());
  call(&Stub::DrainBackend, backend(drain), v1::Backend());
  call(&Stub::UndrainBackend, backend(v1::UndrainBackendRequest()), v1::Backend());
  call(&Stub::RemoveBackend, backend(v1::RemoveBackendRequest()), v1::RemoveBackendResponse());
  call(&Stub::RemoveService, remove, v1::RemoveServiceResponse());
  call(&Stub::ListBackends, v1::ListBackendsRequest(), v1::ListBackendsResponse());
  call(&Stub::ListMoves, v1::ListMovesRequest(), v1::ListMovesResponse());
  EXPECT_THAT(
      agent.Calls(),
      ElementsAre("add service greeter 10.9.0.1:50051 no snat",
                  "add backend weight 100 greeter 10.1.1.2:50051",
                  "set backend weight 7 greeter 10.1.1.2:50051",
                  "drain over 2000000000 ns greeter 10.1.1.2:50051",
                  "undrain greeter 10.1.1.2:50051", "remove backend greeter 10.1.1.2:50051",
                  "remove service greeter", "list backends of all", "list 100 moves of all"));
}

TEST_F(AdminServiceTest, ConnectionsAreFilteredAndPaged) {
  for (uint16_t port = 1; port <= 5; ++port) {
    ConnectionView view;
    view.connection.key = {{IpAddress{0x0a000007}, port}, kVip};
    view.connection.protocol = port == 3 ? Protocol::kTls : Protocol::kH2;
    view.service = "greeter";
    agent.connections.push_back(view);
  }
  v1::ListConnectionsRequest request;
  request.set_protocol("h2");
  request.set_page_size(3);
  std::vector<std::string> clients;
  int pages = 0;
  do {
    grpc::ClientContext own;
    v1::ListConnectionsResponse response;
    ASSERT_TRUE(stub->ListConnections(&own, request, &response).ok());
    for (const v1::Connection& connection : response.connections())
      clients.push_back(connection.client());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 2);
  EXPECT_THAT(clients, ElementsAre("10.0.0.7:1", "10.0.0.7:2", "10.0.0.7:4", "10.0.0.7:5"));
}

TEST_F(AdminServiceTest, MoveWithoutWaitAnswersAtOnce) {
  agent.moves = {MoveIn(MoveState::kPlanned)};
  v1::MoveConnectionRequest request = MoveRequest(0);
  request.set_service("greeter");
  request.set_target("10.1.1.2:50051");
  v1::Move move;
  ASSERT_TRUE(stub->MoveConnection(&context, request, &move).ok());
  EXPECT_EQ(move.state(), v1::Move::PLANNED);
  EXPECT_THAT(agent.Calls(), ElementsAre("move 10.0.0.7:40112 of greeter to 10.1.1.2:50051"));
}

TEST_F(AdminServiceTest, MoveWithWaitAnswersWhenItHasEnded) {
  agent.moves = {MoveIn(MoveState::kPlanned)};
  v1::Move move;
  auto answered = std::async(std::launch::async, [&] {
    return stub->MoveConnection(&context, MoveRequest(60), &move).ok();
  });
  agent.AwaitCall("move 10.0.0.7:40112 of any to any");
  agent.SetMove(MoveIn(MoveState::kAcknowledged));
  agent.SetMove(MoveIn(MoveState::kReconnected));
  ASSERT_EQ(answered.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_TRUE(answered.get());
  EXPECT_EQ(move.state(), v1::Move::RECONNECTED);
}

TEST_F(AdminServiceTest, MoveWithWaitAnswersHowItStandsWhenTimeIsUp) {
  agent.moves = {MoveIn(MoveState::kAcknowledged)};
  v1::Move move;
  const TimePoint begin = Now();
  ASSERT_TRUE(stub->MoveConnection(&context, MoveRequest(1), &move).ok());
  EXPECT_EQ(move.state(), v1::Move::ACKNOWLEDGED);
  EXPECT_GE(Now() - begin, seconds(1));
}

TEST_F(AdminServiceTest, EventsFlowFromTheMomentTheStreamIsOpen) {
  v1::WatchEventsRequest request;
  const auto reader = stub->WatchEvents(&context, request);
  reader->WaitForInitialMetadata();
  agent.Publish({Now(), "backend-added", "greeter", "backend 10.1.1.2:50051 added", {}});
  agent.SetMove(MoveIn(MoveState::kSent));
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.type(), "backend-added");
  EXPECT_EQ(event.message(), "backend 10.1.1.2:50051 added");
  EXPECT_FALSE(event.has_move());
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.type(), "move-sent");
  EXPECT_EQ(event.move().state(), v1::Move::SENT);
  context.TryCancel();
}

TEST_F(AdminServiceTest, AWatcherThatLeavesIsForgotten) {
  const auto reader = stub->WatchEvents(&context, v1::WatchEventsRequest());
  reader->WaitForInitialMetadata();
  EXPECT_EQ(agent.CountWatchers(), 1u);
  context.TryCancel();
  reader->Finish();
  // The handler drops its queue when it sees the cancellation; give up only after long.
  const TimePoint deadline = Now() + seconds(20);
  while (agent.CountWatchers() > 0 && Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(agent.CountWatchers(), 0u);
}

}  // namespace
}  // namespace unpin
