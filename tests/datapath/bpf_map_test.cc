// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/bpf_map.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bpf/abi.h"
#include "tests/datapath/sandbox.h"
#include "userspace/datapath/bpffs.h"
#include "userspace/datapath/program.h"

namespace unpin {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class BpfMapTest : public testing::Test {
 protected:
  void SetUp() override {
    auto program = Program::Load({.bpffs = directory_, .connections = 1000});
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_unique<Program>(*std::move(program));
  }
  void TearDown() override { EXPECT_TRUE(UnpinMaps(directory_).ok()); }

  const unpin_skel& objects() const { return program_->data_plane(); }

  std::string directory_ = FreshPinDirectory();
  std::unique_ptr<Program> program_;
};

unpin_flow_key Key(uint32_t i) {
  return {.source = i, .destination = ~i, .source_port = 1, .destination_port = 2};
}

TEST_F(BpfMapTest, RefusesTypesOfAnotherSizeAndNamesTheMap) {
  const auto wrong_value = BpfMap<unpin_flow_key, unpin_service>::Open(objects().maps.flows);
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong_value.status())) << wrong_value.status();
  EXPECT_THAT(wrong_value.status().message(),
              AllOf(HasSubstr("flows"), HasSubstr("152"), HasSubstr("16")));
  EXPECT_FALSE((BpfMap<unpin_service_key, unpin_flow>::Open(objects().maps.flows).ok()));
}

TEST_F(BpfMapTest, PutGetEraseUnderTheValuesLock) {
  const auto flows = BpfMap<unpin_flow_key, unpin_flow>::Open(objects().maps.flows);
  ASSERT_TRUE(flows.ok()) << flows.status();
  EXPECT_TRUE(absl::IsNotFound(flows->Get(Key(1)).status()));
  unpin_flow flow = {};
  flow.backend = 42;
  ASSERT_TRUE(flows->Put(Key(1), flow).ok());
  const auto found = flows->Get(Key(1));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->backend, 42u);
  EXPECT_TRUE(flows->Erase(Key(1)).ok());
  EXPECT_TRUE(absl::IsNotFound(flows->Get(Key(1)).status()));
  EXPECT_TRUE(flows->Erase(Key(1)).ok()) << "absent already";
}

TEST_F(BpfMapTest, AFullMapSaysHowLargeItIs) {
  const auto flows = BpfMap<unpin_flow_key, unpin_flow>::Open(objects().maps.flows);
  ASSERT_TRUE(flows.ok()) << flows.status();
  uint32_t i = 0;
  absl::Status status;
  while (status.ok() && i < 2001) status = flows->Put(Key(i++), unpin_flow{});
  EXPECT_EQ(i, 2001u) << status;  // room for 2000
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("flows"), HasSubstr("2000")));
}

TEST_F(BpfMapTest, VisitsEveryEntryOnceWhateverTheBatch) {
  const auto flows = BpfMap<unpin_flow_key, unpin_flow>::Open(objects().maps.flows);
  ASSERT_TRUE(flows.ok()) << flows.status();
  constexpr uint32_t kEntries = 1500;
  for (uint32_t i = 0; i < kEntries; ++i) {
    unpin_flow flow = {};
    flow.backend = i;
    ASSERT_TRUE(flows->Put(Key(i), flow).ok());
  }
  // A batch of 1 is smaller than many buckets of the hash: the kernel answers ENOSPC.
  for (const uint32_t batch : {1u, 7u, 1500u, 1501u, 4096u}) {
    SCOPED_TRACE(batch);
    std::map<uint32_t, int> seen;
    const absl::Status status = flows->ForEach(
        [&](const unpin_flow_key& key, const unpin_flow& flow) {
          EXPECT_EQ(key.source, flow.backend);
          ++seen[flow.backend];
        },
        batch);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(seen.size(), kEntries);
    EXPECT_TRUE(
        std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));
  }
}

TEST_F(BpfMapTest, VisitsNothingInAnEmptyMapAndAllOfAnArray) {
  const auto flows = BpfMap<unpin_flow_key, unpin_flow>::Open(objects().maps.flows);
  const auto backends = BpfMap<uint32_t, unpin_backend>::Open(objects().maps.backends);
  ASSERT_TRUE(flows.ok() && backends.ok());
  int flows_seen = 0;
  EXPECT_TRUE(flows->ForEach([&](const auto&, const auto&) { ++flows_seen; }).ok());
  EXPECT_EQ(flows_seen, 0);
  uint32_t backends_seen = 0;
  const absl::Status status =
      backends->ForEach([&](const auto&, const auto&) { ++backends_seen; }, 1000);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(backends_seen, uint32_t{UNPIN_MAX_BACKENDS});
}

TEST_F(BpfMapTest, CountersHaveOneValueForEachPossibleCpu) {
  const auto counts = BpfPerCpuArray<uint64_t>::Open(objects().maps.verdict_counts);
  ASSERT_TRUE(counts.ok()) << counts.status();
  const auto values = counts->Get(UNPIN_DROP_TTL);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->size(), static_cast<size_t>(libbpf_num_possible_cpus()));
  EXPECT_THAT(*values, Each(0u));
  EXPECT_FALSE(counts->Get(UNPIN_VERDICT_COUNT).ok());
  EXPECT_FALSE(BpfPerCpuArray<uint64_t>::Open(objects().maps.backends).ok());
}

}  // namespace
}  // namespace unpin
