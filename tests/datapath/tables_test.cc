// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/tables.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>

#include <algorithm>

#include "tests/datapath/loaded_program.h"
#include "userspace/base/unique_fd.h"

namespace unpin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

ServiceRow Service(ServiceId id, uint16_t port, bool snat = true) {
  return {.id = id, .vip = {.address = {0x0a090001}, .port = port}, .snat = snat};
}

BackendRow Backend(BackendId id, BackendRow::State state = BackendRow::State::kServing) {
  return {.id = id,
          .service = 3,
          .endpoint = {.address = {0x0a010100 + id}, .port = 50051},
          .state = state};
}

class TablesTest : public LoadedProgram {
 protected:
  void SetUp() override {
    LoadedProgram::SetUp();
    OpenTables();
  }
  void OpenTables() {
    auto tables = KernelTables::Open(*program_);
    ASSERT_TRUE(tables.ok()) << tables.status();
    tables_ = *std::move(tables);
  }

  unpin_service RawService(uint16_t port) const {
    const unpin_service_key key = {
        .address = htonl(0x0a090001), .port = htons(port), .protocol = 6, .pad = 0};
    unpin_service service = {};
    EXPECT_EQ(
        bpf_map_lookup_elem(bpf_map__fd(program_->data_plane().maps.services), &key, &service), 0);
    return service;
  }

  // The slots a packet of service `id` would look into; empty if there is no table.
  std::vector<BackendId> RawSlots(ServiceId id, uint32_t count) const {
    uint32_t inner_id = 0;
    if (bpf_map_lookup_elem(bpf_map__fd(program_->data_plane().maps.maglev_tables), &id,
                            &inner_id) != 0)
      return {};
    const UniqueFd inner(bpf_map_get_fd_by_id(inner_id));
    std::vector<BackendId> slots;
    for (uint32_t slot = 0; slot <= count; ++slot) {
      BackendId backend = 0;
      if (bpf_map_lookup_elem(inner.get(), &slot, &backend) == 0) slots.push_back(backend);
    }
    return slots;
  }

  std::unique_ptr<KernelTables> tables_;
};

TEST_F(TablesTest, InstallsAWholeTableAndSwapsItForAnotherSize) {
  std::vector<BackendId> large(UNPIN_MAGLEV_SLOTS);
  for (uint32_t slot = 0; slot < large.size(); ++slot) large[slot] = slot * 7 % 1000;
  ASSERT_TRUE(tables_->PutService(Service(3, 80), large).ok());
  EXPECT_EQ(RawService(80).id, 3u);
  EXPECT_EQ(RawService(80).flags, uint32_t{UNPIN_SERVICE_SNAT});
  EXPECT_EQ(RawService(80).slots, uint32_t{UNPIN_MAGLEV_SLOTS});
  EXPECT_EQ(RawSlots(3, UNPIN_MAGLEV_SLOTS), large);

  const std::vector<BackendId> small = {9, 8, 9, 8, 9};
  ASSERT_TRUE(tables_->PutService(Service(3, 80), small).ok());
  EXPECT_EQ(RawService(80).slots, 5u);
  EXPECT_EQ(RawSlots(3, UNPIN_MAGLEV_SLOTS), small);
}

TEST_F(TablesTest, AServiceWithoutBackendsHasNoSlots) {
  ASSERT_TRUE(tables_->PutService(Service(3, 80, /*snat=*/false), {}).ok());
  EXPECT_EQ(RawService(80).slots, 0u);
  EXPECT_EQ(RawService(80).flags, 0u);
}

TEST_F(TablesTest, ANewAgentReadsBackWhatWasThere) {
  const std::vector<BackendId> slots = {1, 2, 1};
  ASSERT_TRUE(tables_->PutService(Service(3, 80), slots).ok());
  ASSERT_TRUE(tables_->PutService(Service(4, 81, false), {}).ok());
  for (const BackendRow& row : {Backend(1), Backend(2, BackendRow::State::kDraining),
                                Backend(UNPIN_MAX_BACKENDS - 1, BackendRow::State::kDown)}) {
    ASSERT_TRUE(tables_->PutBackend(row).ok());
  }
  Load();
  OpenTables();
  const auto services = tables_->ReadServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_THAT(*services, UnorderedElementsAre(Service(3, 80), Service(4, 81, false)));
  const auto backends = tables_->ReadBackends();
  ASSERT_TRUE(backends.ok()) << backends.status();
  EXPECT_THAT(*backends, ElementsAre(Backend(1), Backend(2, BackendRow::State::kDraining),
                                     Backend(UNPIN_MAX_BACKENDS - 1, BackendRow::State::kDown)));
  EXPECT_EQ(RawSlots(3, 3), slots);
}

TEST_F(TablesTest, ErasingLeavesNothingAndMayBeRepeated) {
  const std::vector<BackendId> slots = {1, 1, 1};
  ASSERT_TRUE(tables_->PutService(Service(3, 80), slots).ok());
  ASSERT_TRUE(tables_->PutBackend(Backend(1)).ok());
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(tables_->EraseService(Service(3, 80)).ok());
    EXPECT_TRUE(tables_->EraseBackend(1).ok());
    EXPECT_THAT(*tables_->ReadServices(), IsEmpty());
    EXPECT_THAT(*tables_->ReadBackends(), IsEmpty());
    EXPECT_THAT(RawSlots(3, 3), IsEmpty());
  }
}

TEST_F(TablesTest, WhatDoesNotFitIsRefusedByName) {
  const absl::Status backend = tables_->PutBackend(Backend(UNPIN_MAX_BACKENDS));
  EXPECT_TRUE(absl::IsResourceExhausted(backend)) << backend;
  EXPECT_THAT(backend.message(), HasSubstr("backends"));
  const std::vector<BackendId> slots = {1, 1, 1};
  const absl::Status service = tables_->PutService(Service(UNPIN_MAX_SERVICES, 80), slots);
  EXPECT_FALSE(service.ok());
  EXPECT_THAT(service.message(), HasSubstr("1024"));
  EXPECT_THAT(*tables_->ReadServices(), IsEmpty());  // no service without its table
}

// Connections outlive their service and backend: their packets must still be looked at.
TEST_F(TablesTest, EndpointsOnceOursAreExpectedForGood) {
  const auto is_expected = [&](uint32_t address, uint16_t port) {
    const uint32_t index = 0;
    unpin_endpoint_filter filter = {};
    EXPECT_EQ(
        bpf_map_lookup_elem(bpf_map__fd(program_->data_plane().maps.endpoints), &index, &filter),
        0);
    return has_endpoint(&filter, htonl(address), htons(port)) != 0;
  };
  EXPECT_FALSE(is_expected(0x0a090001, 80));
  EXPECT_FALSE(is_expected(0x0a010101, 50051));
  ASSERT_TRUE(tables_->PutService(Service(3, 80), {}).ok());
  ASSERT_TRUE(tables_->PutBackend(Backend(1)).ok());
  EXPECT_TRUE(is_expected(0x0a090001, 80));
  EXPECT_TRUE(is_expected(0x0a010101, 50051));
  EXPECT_FALSE(is_expected(0x0a090001, 81));

  ASSERT_TRUE(tables_->EraseService(Service(3, 80)).ok());
  ASSERT_TRUE(tables_->EraseBackend(1).ok());
  Load();
  OpenTables();
  EXPECT_TRUE(is_expected(0x0a090001, 80));
  EXPECT_TRUE(is_expected(0x0a010101, 50051));
}

}  // namespace
}  // namespace unpin
