// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/controls.h"

#include <arpa/inet.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/datapath/sandbox.h"
#include "userspace/datapath/program.h"

namespace unpin {
namespace {

using testing::HasSubstr;

class ControlsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto program = Program::Load({.bpffs = directory_, .connections = 1000});
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_unique<Program>(*std::move(program));
    controls_ = OpenControls();
  }
  void TearDown() override { EXPECT_TRUE(UnpinMaps(directory_).ok()); }

  std::unique_ptr<Controls> OpenControls() {
    auto controls = Controls::Open(program_->data_plane().maps.controls);
    EXPECT_TRUE(controls.ok()) << controls.status();
    return *std::move(controls);
  }

  // What the data plane would read.
  unpin_controls InKernel() {
    const auto map = BpfMap<uint32_t, unpin_controls>::Open(program_->data_plane().maps.controls);
    EXPECT_TRUE(map.ok()) << map.status();
    return *map->Get(0);
  }

  std::string directory_ = FreshPinDirectory();
  std::unique_ptr<Program> program_;
  std::unique_ptr<Controls> controls_;
};

TEST_F(ControlsTest, WritesSettingsAsTheDataPlaneReadsThem) {
  const ControlSettings settings = {
      .snat = {.addresses = {IpAddress{0x0a01ff01}, IpAddress{0x0a01ff02}},
               .port_min = 2000,
               .port_max = 3000},
      .reset_unknown = false,
      .event_mask = 1u << UNPIN_EVENT_CLOSED};
  ASSERT_TRUE(controls_->Apply(settings).ok());
  const unpin_controls seen = InKernel();
  EXPECT_EQ(seen.snat_count, 2u);
  EXPECT_EQ(seen.snat_addresses[0], inet_addr("10.1.255.1"));
  EXPECT_EQ(seen.snat_addresses[1], inet_addr("10.1.255.2"));
  EXPECT_EQ(seen.snat_port_min, 2000);
  EXPECT_EQ(seen.snat_port_max, 3000);
  EXPECT_EQ(seen.unknown_tcp, uint32_t{UNPIN_UNKNOWN_DROP});
  EXPECT_EQ(seen.event_mask, 2u);
}

TEST_F(ControlsTest, EveryEventIsOnUnlessMasked) {
  ASSERT_TRUE(controls_->Apply({}).ok());
  for (const int type : {UNPIN_EVENT_OPENED, UNPIN_EVENT_CLOSED, UNPIN_EVENT_COMMITTED,
                         UNPIN_EVENT_ACKNOWLEDGED, UNPIN_EVENT_HOLE, UNPIN_EVENT_NO_NEIGHBOR}) {
    EXPECT_TRUE(InKernel().event_mask & 1u << type) << type;
  }
  EXPECT_EQ(InKernel().unknown_tcp, uint32_t{UNPIN_UNKNOWN_RESET});
}

TEST_F(ControlsTest, TheRouteGenerationOutlivesSettingsAndAgents) {
  ASSERT_TRUE(controls_->RaiseRouteGeneration().ok());
  ASSERT_TRUE(controls_->RaiseRouteGeneration().ok());
  ASSERT_TRUE(controls_->Apply({}).ok());
  EXPECT_EQ(InKernel().route_generation, 2u);
  const auto successor = OpenControls();
  ASSERT_TRUE(successor->RaiseRouteGeneration().ok());
  EXPECT_EQ(InKernel().route_generation, 3u);
  EXPECT_EQ(InKernel().event_mask, kAllEvents);
}

TEST_F(ControlsTest, RefusesWhatDoesNotFitAndChangesNothing) {
  ASSERT_TRUE(controls_->Apply({.snat = {.addresses = {IpAddress{1}}}}).ok());
  const absl::Status crowded =
      controls_->Apply({.snat = {.addresses = std::vector<IpAddress>(17)}});
  EXPECT_TRUE(absl::IsInvalidArgument(crowded)) << crowded;
  EXPECT_THAT(crowded.message(), HasSubstr("16"));
  const absl::Status reversed =
      controls_->Apply({.snat = {.addresses = {}, .port_min = 10, .port_max = 9}});
  EXPECT_TRUE(absl::IsInvalidArgument(reversed)) << reversed;
  EXPECT_FALSE(controls_->Apply({.snat = {.addresses = {}, .port_min = 0, .port_max = 9}}).ok());
  EXPECT_EQ(InKernel().snat_count, 1u);
  EXPECT_EQ(InKernel().snat_port_min, 1024);
}

}  // namespace
}  // namespace unpin
