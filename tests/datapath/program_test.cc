// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bpf/abi.h"
#include "tests/datapath/sandbox.h"
#include "userspace/datapath/bpf_map.h"
#include "userspace/datapath/bpffs.h"

namespace unpin {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ProgramTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(UnpinMaps(options_.bpffs).ok()); }

  std::vector<std::string> Pins() const {
    const auto names = ListPins(options_.bpffs);
    EXPECT_TRUE(names.ok()) << names.status();
    return *names;
  }

  ProgramOptions options_ = {.bpffs = FreshPinDirectory(), .connections = 1000};
};

uint32_t MapId(const bpf_map* map) {
  bpf_map_info information = {};
  uint32_t length = sizeof(information);
  EXPECT_EQ(bpf_obj_get_info_by_fd(bpf_map__fd(map), &information, &length), 0);
  return information.id;
}

TEST_F(ProgramTest, PinsEveryMapUnderItsName) {
  const auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(program->adopted());
  EXPECT_THAT(program->warnings(), IsEmpty());
  EXPECT_THAT(Pins(),
              UnorderedElementsAre("services", "backends", "standings", "admissions", "endpoints",
                                   "maglev_tables", "flows", "half_open", "pins", "controls",
                                   "verdict_counts", "events", "captures", "scratch", "layout"));
}

TEST_F(ProgramTest, BothObjectsShareTheMaps) {
  const auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(MapId(program->data_plane().maps.flows), MapId(program->goaway().maps.flows));
  EXPECT_EQ(MapId(program->data_plane().maps.pins), MapId(program->goaway().maps.pins));
}

TEST_F(ProgramTest, CountsBothDirectionsOfAConnection) {
  const auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(bpf_map__max_entries(program->data_plane().maps.flows), 2000u);
}

TEST_F(ProgramTest, AdoptsWhatAnEarlierAgentLeftAgainAndAgain) {
  const unpin_service_key key = {.address = 1, .port = 2, .protocol = 6, .pad = 0};
  const unpin_service service = {.id = 7, .flags = 1, .slots = 65537, .new_per_second = 0};
  {
    const auto first = Program::Load(options_);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto services =
        BpfMap<unpin_service_key, unpin_service>::Open(first->data_plane().maps.services);
    ASSERT_TRUE(services.ok()) << services.status();
    ASSERT_TRUE(services->Put(key, service).ok());
  }
  for (int restart = 0; restart < 2; ++restart) {
    const auto next = Program::Load(options_);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE(next->adopted());
    EXPECT_THAT(next->warnings(), IsEmpty());
    const auto services =
        BpfMap<unpin_service_key, unpin_service>::Open(next->data_plane().maps.services);
    ASSERT_TRUE(services.ok()) << services.status();
    const auto found = services->Get(key);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->id, 7u);
  }
}

TEST_F(ProgramTest, KeepsThePinnedTableWhenAnotherSizeIsAskedFor) {
  ASSERT_TRUE(Program::Load(options_).ok());
  options_.connections = 5000;
  const auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(bpf_map__max_entries(program->data_plane().maps.flows), 2000u);
  ASSERT_EQ(program->warnings().size(), 1u);
  EXPECT_THAT(program->warnings()[0],
              AllOf(HasSubstr("1000"), HasSubstr("5000"), HasSubstr("limits.connections")));
}

TEST_F(ProgramTest, RefusesAForeignLayoutAndLeavesItAlone) {
  const std::string tag(64, 'f');
  std::vector<char> value(tag.begin(), tag.end());
  value.push_back('\0');
  const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "other", 4,
                                 static_cast<uint32_t>(value.size()), 1, nullptr);
  ASSERT_GE(map, 0);
  const uint32_t index = 0;
  ASSERT_EQ(bpf_map_update_elem(map, &index, value.data(), BPF_ANY), 0);
  ASSERT_EQ(mkdir(options_.bpffs.c_str(), 0700), 0);
  ASSERT_EQ(bpf_obj_pin(map, (options_.bpffs + "/layout").c_str()), 0);
  close(map);

  const absl::Status status = Program::Load(options_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("ffffffffffff"), HasSubstr("unpind --detach"),
                                      HasSubstr(options_.bpffs)));
  EXPECT_THAT(Pins(), UnorderedElementsAre("layout"));
}

TEST_F(ProgramTest, RefusesMapsWithoutALayout) {
  ASSERT_TRUE(Program::Load(options_).ok());
  ASSERT_TRUE(RemovePin(options_.bpffs + "/layout").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Program::Load(options_).status()));
}

TEST_F(ProgramTest, AnEmptyFolderOfLinksIsNobodys) {
  ASSERT_EQ(mkdir(options_.bpffs.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((options_.bpffs + "/links").c_str(), 0700), 0);
  const auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_FALSE(program->adopted());
}

TEST_F(ProgramTest, AFailedFirstStartLeavesNothing) {
  options_.connections = 1u << 31;  // no such table
  EXPECT_FALSE(Program::Load(options_).ok());
  EXPECT_FALSE(std::filesystem::exists(options_.bpffs));
}

TEST_F(ProgramTest, AKernelRefusalIsExplained) {
  options_.connections = 1u << 30;  // 2^31 entries of 160 bytes: E2BIG or ENOMEM from the kernel
  const absl::Status status = Program::Load(options_).status();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), AllOf(HasSubstr("flows"), HasSubstr("load the BPF object unpin")));
  EXPECT_THAT(Pins(), IsEmpty());
}

TEST_F(ProgramTest, TwoAgentsDoNotShareADirectory) {
  const auto first = Program::Load(options_);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = Program::Load(options_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(second.message(), HasSubstr("in use by another unpind"));
}

TEST_F(ProgramTest, SaysHowToMountABpfFileSystem) {
  const absl::Status status = Program::Load({.bpffs = "/run/elsewhere/unpin"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("mount -t bpf bpf /run/elsewhere"));
}

TEST_F(ProgramTest, UnpinLeavesNoDirectory) {
  auto program = Program::Load(options_);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(mkdir((options_.bpffs + "/links").c_str(), 0700), 0);
  EXPECT_TRUE(program->Unpin().ok());
  EXPECT_FALSE(std::filesystem::exists(options_.bpffs));
}

}  // namespace
}  // namespace unpin
