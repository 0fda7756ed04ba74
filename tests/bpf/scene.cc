// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/scene.h"

#include <arpa/inet.h>

#include "absl/strings/str_join.h"
#include "tests/testkit/decode.h"

namespace unpin::testkit {

PrivateNetwork DataPlaneTest::network_;

unpin_flow_key FlowKey(const std::string& source, uint16_t source_port,
                       const std::string& destination, uint16_t destination_port) {
  return {htonl(Quad(source)), htonl(Quad(destination)), htons(source_port),
          htons(destination_port)};
}

void DataPlaneTest::SetUpTestSuite() {
  if (network_.client.ifindex != 0) return;
  const absl::StatusOr<PrivateNetwork> network = EnterPrivateNetwork();
  ASSERT_TRUE(network.ok()) << network.status();
  network_ = *network;
}

// Loading is most of a test's time: those of the usual sizes share one load.
void DataPlaneTest::SetUp() {
  static const absl::StatusOr<std::shared_ptr<DataPlane>> shared = DataPlane::Load({});
  ASSERT_TRUE(shared.ok()) << shared.status();
  plane_ = *shared;
  const absl::Status cleared = plane_->Clear();
  ASSERT_TRUE(cleared.ok()) << cleared;
  SetScene();
}

void DataPlaneTest::Reload(const DataPlaneSizes& sizes) {
  absl::StatusOr<std::unique_ptr<DataPlane>> plane = DataPlane::Load(sizes);
  ASSERT_TRUE(plane.ok()) << plane.status();
  plane_ = *std::move(plane);
  SetScene();
}

void DataPlaneTest::SetScene() {
  controls_ = {.route_generation = 1,
               .event_mask = ~0u,
               .unknown_tcp = UNPIN_UNKNOWN_RESET,
               .snat_port_min = 1024,
               .snat_port_max = 32767,
               .snat_count = 1,
               .snat_addresses = {htonl(Quad(kSnatAddress))}};
  SetControls();
  SetBackendState(0, UNPIN_BACKEND_SERVING);
  SetBackendState(1, UNPIN_BACKEND_SERVING);
  UseBackend(0);
  for (const uint32_t id : kBackend) EXPECT_TRUE(plane_->PutStanding(id, {}).ok());
  SetServiceFlags(UNPIN_SERVICE_SNAT);
}

void DataPlaneTest::UseBackend(int which) {
  EXPECT_TRUE(plane_->PutTable(kService, std::vector<uint32_t>(7, kBackend[which])).ok());
}

void DataPlaneTest::SetBackendState(int which, uint32_t state) {
  const unpin_backend backend = {.address = htonl(Quad(kBackendAddress[which])),
                                 .port = htons(kBackendPort[which]),
                                 .state = static_cast<uint16_t>(state),
                                 .service = kService,
                                 .pad = 0};
  EXPECT_TRUE(plane_->PutBackend(kBackend[which], backend).ok());
}

void DataPlaneTest::SetServiceFlags(uint32_t flags, const std::string& vip) {
  const unpin_service_key key = {htonl(Quad(vip)), htons(kVipPort), IPPROTO_TCP, 0};
  EXPECT_TRUE(plane_->PutService(key, {.id = kService, .flags = flags, .slots = 7, .new_per_second = 0}).ok());
}

Outcome DataPlaneTest::Run(const Bytes& frame, uint32_t ifindex) {
  const absl::StatusOr<Outcome> outcome = plane_->Run(frame, ifindex);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.value_or(Outcome{});
}

void DataPlaneTest::ExpectRun(const Bytes& in, uint32_t ifindex, uint32_t verdict, uint32_t action,
                              const Bytes& out, std::source_location where) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                                     "the frame that came in:\n" + Decode(in));
  const Outcome outcome = Run(in, ifindex);
  const auto name = [this](std::string* text, uint32_t value) {
    text->append(plane_->NameOf("unpin_verdict", value));
  };
  EXPECT_EQ(absl::StrJoin(outcome.counted, " ", name), plane_->NameOf("unpin_verdict", verdict));
  EXPECT_EQ(outcome.action, action) << "an enum xdp_action";
  if (action != XDP_DROP) {
    EXPECT_THAT(outcome.frame, FrameIs(out));
  }
}

void DataPlaneTest::ExpectPass(const Bytes& frame, uint32_t verdict, std::source_location where) {
  ExpectRun(frame, network_.client.ifindex, verdict, XDP_PASS, frame, where);
}

std::vector<unpin_event> DataPlaneTest::TakeEvents(uint32_t type) {
  std::vector<unpin_event> wanted;
  for (const unpin_event& event : plane_->TakeEvents()) {
    if (event.type == type) wanted.push_back(event);
  }
  return wanted;
}

}  // namespace unpin::testkit
