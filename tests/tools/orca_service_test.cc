// SPDX-License-Identifier: Apache-2.0
// The ORCA reports: their bytes against the numbers of the specification, and their truth against a known load.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "proto/unpin/gen/v1/echo.grpc.pb.h"
#include "proto/xds/service/orca/v3/orca.grpc.pb.h"
#include "tools/unpin-gen/backend.h"

namespace unpin::gen {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using xds::data::orca::v3::OrcaLoadReport;
using xds::service::orca::v3::OpenRcaService;
using xds::service::orca::v3::OrcaLoadReportRequest;

// Field `number` with the double 1.0.
std::string Double(int number) {
  return char(number << 3 | 1) + std::string("\0\0\0\0\0\0\xf0\x3f", 8);
}

// Field `number`: a map entry from "a" to 1.0.
std::string Entry(int number) {
  return char(number << 3 | 2) +
         std::string(
             "\x0c\x0a\x01"
             "a",
             4) +
         Double(2);
}

TEST(OrcaReport, FieldNumbersAreThoseOfTheSpecification) {
  OrcaLoadReport report;
  ASSERT_TRUE(report.ParseFromString(Double(1) + Double(2) + Entry(4) + Entry(5) + Double(6) +
                                     Double(7) + Entry(8) + Double(9)));
  EXPECT_EQ(report.cpu_utilization(), 1);
  EXPECT_EQ(report.mem_utilization(), 1);
  EXPECT_EQ(report.request_cost().at("a"), 1);
  EXPECT_EQ(report.utilization().at("a"), 1);
  EXPECT_EQ(report.rps_fractional(), 1);
  EXPECT_EQ(report.eps(), 1);
  EXPECT_EQ(report.named_metrics().at("a"), 1);
  EXPECT_EQ(report.application_utilization(), 1);
  EXPECT_EQ(report.GetReflection()->GetUnknownFields(report).field_count(), 0);
}

std::shared_ptr<grpc::Channel> ChannelTo(const Backend& backend) {
  return grpc::CreateChannel("127.0.0.1:" + std::to_string(backend.port()),
                             grpc::InsecureChannelCredentials());
}

std::unique_ptr<Backend> StartBackend(bool orca) {
  auto backend = Backend::Start({.listen = "127.0.0.1:0",
                                 .name = "b1",
                                 .workers = 4,
                                 .service_time = seconds(5),
                                 .max_connection_age = {},
                                 .max_connection_age_grace = {},
                                 .tls_certificate = {},
                                 .tls_key = {},
                                 .orca = orca});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return *std::move(backend);
}

TEST(OrcaService, ReportsTheShareOfWorkersInUseAndEndsWhenTheServerDrains) {
  const std::unique_ptr<Backend> backend = StartBackend(true);
  const auto channel = ChannelTo(*backend);

  // One of four workers busy for longer than the test looks.
  grpc::ClientContext echo_context;
  v1::EchoRequest echo;
  v1::EchoReply reply;
  grpc::Status echo_status;
  grpc::CompletionQueue queue;
  const auto call = v1::Echo::NewStub(channel)->AsyncEcho(&echo_context, echo, &queue);
  call->Finish(&reply, &echo_status, nullptr);

  grpc::ClientContext context;
  OrcaLoadReportRequest request;
  request.mutable_report_interval()->set_nanos(200'000'000);
  const auto reports = OpenRcaService::NewStub(channel)->StreamCoreMetrics(&context, request);
  OrcaLoadReport report;
  ASSERT_TRUE(reports->Read(&report));
  ASSERT_TRUE(reports->Read(&report));  // of an interval the request was in from end to end
  EXPECT_NEAR(report.cpu_utilization(), 0.25, 0.01);
  EXPECT_EQ(report.application_utilization(), report.cpu_utilization());
  EXPECT_EQ(report.rps_fractional(), 0);

  // Cancelled by the end of grace, while the stream of reports ended well before.
  backend->Drain(milliseconds(300));
  while (reports->Read(&report)) continue;
  EXPECT_TRUE(reports->Finish().ok());
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(echo_status.ok());
}

TEST(OrcaService, IsUnimplementedUnlessAskedFor) {
  const std::unique_ptr<Backend> backend = StartBackend(false);
  grpc::ClientContext context;
  const auto reports =
      OpenRcaService::NewStub(ChannelTo(*backend))->StreamCoreMetrics(&context, {});
  OrcaLoadReport report;
  EXPECT_FALSE(reports->Read(&report));
  EXPECT_EQ(reports->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace unpin::gen
