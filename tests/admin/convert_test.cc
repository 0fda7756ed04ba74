// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/convert.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace unpin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

const Endpoint kBackend{IpAddress{0x0a010102}, 50051};  // 10.1.1.2
const Endpoint kClient{IpAddress{0x0a000007}, 40112};   // 10.0.0.7

TEST(ConvertIn, ServiceKeepsEveryField) {
  const auto spec = ServiceFrom(Parse<v1::AddServiceRequest>(
      R"(service { name: "greeter-2" address: "10.9.0.1" port: 65535 snat: true })"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec, (ServiceSpec{"greeter-2", {IpAddress{0x0a090001}, 65535}, true}));
}

TEST(ConvertIn, BadServiceNamesTheField) {
  const struct {
    const char* request;
    const char* error;
  } cases[] = {
      {"", "service: must be set"},
      {R"(service { address: "10.9.0.1" port: 1 })",
       "service.name: \"\" is not 1 to 63 of a-z, 0-9 and -"},
      {R"(service { name: "Greeter" address: "10.9.0.1" port: 1 })",
       "service.name: \"Greeter\" is not 1 to 63 of a-z, 0-9 and -"},
      {R"(service { name: "a" address: "10.9.0" port: 1 })",
       "service.address: \"10.9.0\" is not an IPv4 address (a.b.c.d)"},
      {R"(service { name: "a" address: "10.9.0.1" })", "service.port: 0 is not in 1..65535"},
      {R"(service { name: "a" address: "10.9.0.1" port: 65536 })",
       "service.port: 65536 is not in 1..65535"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ServiceFrom(Parse<v1::AddServiceRequest>(c.request)).status();
    EXPECT_EQ(status, absl::InvalidArgumentError(c.error)) << c.request;
  }
  v1::AddServiceRequest long_name =
      Parse<v1::AddServiceRequest>(R"(service { address: "10.9.0.1" port: 1 })");
  long_name.mutable_service()->set_name(std::string(63, 'a'));
  EXPECT_TRUE(ServiceFrom(long_name).ok());
  long_name.mutable_service()->set_name(std::string(64, 'a'));
  EXPECT_FALSE(ServiceFrom(long_name).ok());
}

TEST(ConvertIn, BackendNeedsServiceAddressAndPort) {
  const auto ref = BackendFrom(
      Parse<v1::AddBackendRequest>(R"(service: "greeter" address: "10.1.1.2" port: 50051)"));
  ASSERT_TRUE(ref.ok()) << ref.status();
  EXPECT_EQ(ref->service, "greeter");
  EXPECT_EQ(ref->endpoint, kBackend);

  EXPECT_EQ(BackendFrom(Parse<v1::RemoveBackendRequest>(R"(address: "10.1.1.2" port: 1)")).status(),
            absl::InvalidArgumentError("service: must name a service"));
  EXPECT_EQ(
      BackendFrom(Parse<v1::DrainBackendRequest>(R"(service: "g" address: "x" port: 1)")).status(),
      absl::InvalidArgumentError("address: \"x\" is not an IPv4 address (a.b.c.d)"));
  EXPECT_EQ(
      BackendFrom(Parse<v1::UndrainBackendRequest>(R"(service: "g" address: "10.1.1.2")")).status(),
      absl::InvalidArgumentError("port: 0 is not in 1..65535"));
}

TEST(ConvertIn, WeightIsAHundredUnlessSetAndFitsSixteenBits) {
  EXPECT_EQ(WeightFrom(v1::AddBackendRequest()).value(), 100u);
  EXPECT_EQ(WeightFrom(Parse<v1::AddBackendRequest>("weight: 0")).value(), 0u);
  EXPECT_EQ(WeightFrom(Parse<v1::SetBackendRequest>("weight: 65535")).value(), 65535u);
  EXPECT_EQ(WeightFrom(Parse<v1::SetBackendRequest>("weight: 65536")).status(),
            absl::InvalidArgumentError("weight: 65536 is not in 0..65535"));
  EXPECT_EQ(WeightFrom(Parse<v1::AddBackendRequest>("weight: -1")).status(),
            absl::InvalidArgumentError("weight: -1 is not in 0..65535"));
}

TEST(ConvertIn, DurationsHaveDefaultsAndBounds) {
  EXPECT_EQ(WindowFrom(v1::DrainBackendRequest()).value(), seconds(1));
  EXPECT_EQ(WindowFrom(Parse<v1::DrainBackendRequest>("window { nanos: 500000000 }")).value(),
            milliseconds(500));
  EXPECT_EQ(WindowFrom(Parse<v1::DrainBackendRequest>("window {}")).value(), seconds(0));
  EXPECT_EQ(WaitFrom(v1::MoveConnectionRequest()).value(), seconds(0));
  EXPECT_EQ(WaitFrom(Parse<v1::MoveConnectionRequest>("wait { seconds: 60 }")).value(),
            seconds(60));
  for (const char* bad :
       {"wait { seconds: 60 nanos: 1 }", "wait { seconds: -1 }", "wait { nanos: -1 }",
        "wait { seconds: 9223372036854775807 }", "wait { nanos: 1000000000 }"}) {
    const absl::Status status = WaitFrom(Parse<v1::MoveConnectionRequest>(bad)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), testing::StartsWith("wait: ")) << bad;
  }
}

TEST(ConvertIn, FilterSetsWhatTheRequestSets) {
  const auto none = FilterFrom(v1::ListConnectionsRequest());
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->Matches(ConnectionView()));

  const auto all = FilterFrom(Parse<v1::ListConnectionsRequest>(
      R"(service: "greeter" client: "10.0.0.7:40112" backend: "10.1.1.2:50051" protocol: "h2" spliceable: false)"));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->service, "greeter");
  EXPECT_EQ(all->client, kClient.address);
  EXPECT_EQ(all->client_port, 40112);
  EXPECT_EQ(all->backend, kBackend);
  EXPECT_EQ(all->protocol, Protocol::kH2);
  EXPECT_EQ(all->spliceable, false);

  const auto address = FilterFrom(Parse<v1::ListConnectionsRequest>(R"(client: "10.0.0.7")"));
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->client, kClient.address);
  EXPECT_FALSE(address->client_port.has_value());
}

TEST(ConvertIn, BadFilterNamesTheField) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, std::string>>{{"client", "10.0.0.300"},
                                                        {"client", "10.0.0.7:0"},
                                                        {"backend", "10.1.1.2"},
                                                        {"protocol", "grpc"}}) {
    const auto request = Parse<v1::ListConnectionsRequest>(field + ": \"" + value + "\"");
    const absl::Status status = FilterFrom(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(field + ": ")) << value;
  }
}

TEST(ConvertIn, MoveNeedsAClientOnly) {
  const auto least = MoveOrderFrom(Parse<v1::MoveConnectionRequest>(R"(client: "10.0.0.7:40112")"));
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->client, kClient);
  EXPECT_FALSE(least->service.has_value());
  EXPECT_FALSE(least->target.has_value());
  const auto most = MoveOrderFrom(Parse<v1::MoveConnectionRequest>(
      R"(client: "10.0.0.7:40112" service: "greeter" target: "10.1.1.2:50051")"));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->service, "greeter");
  EXPECT_EQ(most->target, kBackend);
  EXPECT_THAT(std::string(MoveOrderFrom(v1::MoveConnectionRequest()).status().message()),
              testing::StartsWith("client: "));
  EXPECT_THAT(std::string(MoveOrderFrom(Parse<v1::MoveConnectionRequest>(
                                            R"(client: "10.0.0.7:1" target: "10.1.1.2:x")"))
                              .status()
                              .message()),
              testing::StartsWith("target: "));
}

// A monotonic clock at 1000 s while the wall shows 1700000000 s.
const ClockPair kNow{TimePoint(seconds(1000)), WallTime(seconds(1700000000))};

template <typename Message>
void ExpectProto(const Message& message, const std::string& expected) {
  EXPECT_EQ(message.DebugString(), Parse<Message>(expected).DebugString());
}

TEST(ConvertOut, ConnectionTellsAgesAndWhyNot) {
  ConnectionView view;
  view.connection.key = {kClient, {IpAddress{0x0a090001}, 50051}};
  view.connection.protocol = Protocol::kTls;
  view.connection.refusal = Refusal::kTls;
  view.connection.created = TimePoint(milliseconds(996800));
  view.connection.last_seen = TimePoint(seconds(1001));  // after `now` was read
  view.connection.streams_begun = 7;
  view.connection.streams_ended = 5;
  view.connection.bytes_to_server = 11;
  view.connection.bytes_to_client = 12;
  view.service = "greeter";
  view.backend = kBackend;
  view.requests_per_second = 2.5;
  ExpectProto(ToProto(view, kNow), R"(
    client: "10.0.0.7:40112" service: "greeter" backend: "10.1.1.2:50051" protocol: "tls"
    age { seconds: 3 nanos: 200000000 } idle {} requests_per_second: 2.5 streams_begun: 7 open_streams: 2
    bytes_to_server: 11 bytes_to_client: 12 spliceable: false not_spliceable: "tls")");
  view.connection.refusal = Refusal::kNone;
  EXPECT_TRUE(ToProto(view, kNow).spliceable());
  EXPECT_EQ(ToProto(view, kNow).not_spliceable(), "");
}

TEST(ConvertOut, MoveTimesAreWallTimesAndUnsetUntilTheyCome) {
  MoveView view;
  view.move.id = 4;
  view.move.connection.client = kClient;
  view.move.reason = MoveReason::kDrain;
  view.move.planned = TimePoint(seconds(990));
  view.service = "greeter";
  view.from = kBackend;
  view.to = {IpAddress{0x0a010202}, 50051};
  const std::string head = R"(
    id: 4 client: "10.0.0.7:40112" service: "greeter" from: "10.1.1.2:50051" to: "10.1.2.2:50051" reason: "drain"
    planned { seconds: 1699999990 } )";
  ExpectProto(ToProto(view, kNow), head + "state: PLANNED");

  view.move.state = MoveState::kReconnected;
  view.move.sent = TimePoint(milliseconds(991500));
  view.move.acknowledged = TimePoint(milliseconds(991501));
  view.move.reconnected = TimePoint(milliseconds(991503));
  view.move.new_client = Endpoint{kClient.address, 40113};
  view.move.goaways_sent = 2;
  ExpectProto(ToProto(view, kNow), head + R"(
    state: RECONNECTED sent { seconds: 1699999991 nanos: 500000000 }
    acknowledged { seconds: 1699999991 nanos: 501000000 } reconnected { seconds: 1699999991 nanos: 503000000 }
    new_client: "10.0.0.7:40113" goaways_sent: 2)");

  view.move.state = MoveState::kExpired;
  EXPECT_EQ(ToProto(view, kNow).state(), v1::Move::EXPIRED);
  view.move.state = MoveState::kRefused;
  EXPECT_EQ(ToProto(view, kNow).state(), v1::Move::REFUSED);
}

TEST(ConvertOut, TheRest) {
  ExpectProto(
      ToProto(StatusView{.version = "0.1.0",
                         .layout = "abc",
                         .started = TimePoint(seconds(999)),
                         .adopted = true,
                         .connections = 3,
                         .connection_capacity = 9,
                         .interfaces = {{"gw-c", "native", true}}},
              kNow),
      R"(version: "0.1.0" layout: "abc" started { seconds: 1699999999 } adopted: true connections: 3
                 connection_capacity: 9 interfaces { name: "gw-c" mode: "native" dispatcher: true })");
  ExpectProto(ToProto(ServiceView{{"greeter", {IpAddress{0x0a090001}, 50051}, false}, 2, 5}),
              R"(name: "greeter" address: "10.9.0.1" port: 50051 backends: 2 connections: 5)");
  ExpectProto(ToProto(BackendView{.service = "greeter",
                                  .endpoint = kBackend,
                                  .weight = 40,
                                  .state = BackendView::State::kDraining,
                                  .draining_since = TimePoint(seconds(998)),
                                  .connections = 1,
                                  .open_streams = 2,
                                  .requests_per_second = 3.5,
                                  .bytes_per_second = 4.5},
                      kNow),
              R"(service: "greeter" address: "10.1.1.2" port: 50051 weight: 40 state: DRAINING
                 draining_since { seconds: 1699999998 } connections: 1 open_streams: 2 requests_per_second: 3.5
                 bytes_per_second: 4.5)");
  ExpectProto(
      ToProto(CountersView{{{"forward_c2s", 7}}, {{"goaways_sent", 2}}}),
      R"(verdicts { name: "forward_c2s" value: 7 } agent { name: "goaways_sent" value: 2 })");
  ExpectProto(
      ToProto(Event{TimePoint(seconds(1000)), "backend-added", "greeter", "by the API", {}}, kNow),
      R"(time { seconds: 1700000000 } type: "backend-added" service: "greeter" message: "by the API")");
}

}  // namespace
}  // namespace unpin
