// SPDX-License-Identifier: Apache-2.0
// A fixture with the data plane loaded, pinned in a directory of its own, and hands on its maps.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/datapath/movable_pair.h"
#include "tests/datapath/sandbox.h"
#include "userspace/datapath/flows.h"
#include "userspace/datapath/program.h"

namespace unpin {

class LoadedProgram : public testing::Test {
 protected:
  void SetUp() override { Load(); }
  void TearDown() override {
    program_.reset();
    EXPECT_TRUE(UnpinMaps(options_.bpffs).ok());
  }

  // Again: as another agent that adopts the maps.
  void Load() {
    program_.reset();
    absl::StatusOr<Program> program = Program::Load(options_);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_unique<Program>(*std::move(program));
  }

  FlowMap FlowTable() const { return *FlowMap::Open(program_->data_plane().maps.flows); }

  void Insert(const FlowPair& pair) const {
    ASSERT_TRUE(FlowTable().Put(pair.key, pair.c2s).ok());
    ASSERT_TRUE(FlowTable().Put(pair.c2s.reverse, pair.s2c).ok());
  }
  FlowPair Read(const FlowPair& pair) const {
    const auto read = ReadFlowPair(FlowTable(), pair.key);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *read : FlowPair{};
  }

  ProgramOptions options_ = {.bpffs = FreshPinDirectory(), .connections = 8192};
  std::unique_ptr<Program> program_;
};

}  // namespace unpin
