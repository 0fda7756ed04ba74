// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/agent/desired.h"
#include "tests/agent/temporary_directory.h"

namespace unpin {
namespace {

using testing::HasSubstr;

struct StoreTest : testing::Test {
  std::unique_ptr<FileStore> Open() {
    auto store = FileStore::Open(state);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  void Write(const std::string& text) {
    std::filesystem::create_directories(state);
    std::ofstream(file, std::ios::binary) << text;
  }
  std::string Read() {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  TemporaryDirectory directory;
  const std::string state = directory / "deep/state";
  const std::string file = state + "/overrides.yaml";
};

TEST_F(StoreTest, ANewStoreChangesNothing) {
  EXPECT_EQ(Open()->Merge(TwoServices()), TwoServices());
  EXPECT_TRUE(std::filesystem::is_directory(state));
}

TEST_F(StoreTest, WhatWasSavedIsThereForTheNextAgent) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.at(Backend(2)).draining = true;
  {
    const auto store = Open();
    store->Rebase(TwoServices());
    ASSERT_TRUE(store->Save(desired).ok());
    EXPECT_EQ(store->Merge(TwoServices()), desired);
  }
  EXPECT_EQ(Open()->Merge(TwoServices()), desired);
}

TEST_F(StoreTest, WhatComesToAgreeWithTheFileIsNoLongerAChange) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.at(Backend(1)).weight = 7;
  const auto store = Open();
  store->Rebase(TwoServices());
  ASSERT_TRUE(store->Save(desired).ok());
  store->Rebase(desired);  // the operator put the same into the file
  ASSERT_TRUE(store->Save(desired).ok());
  EXPECT_EQ(Open()->Merge(TwoServices()), TwoServices());
}

TEST_F(StoreTest, AFailedSaveKeepsTheFileThatIsThere) {
  const auto store = Open();
  store->Rebase({});
  ASSERT_TRUE(store->Save(TwoServices()).ok());
  const std::string before = Read();
  std::filesystem::create_directory(file + ".new");  // in the way of the new one, for root as well
  Desired desired = TwoServices();
  desired.erase("beta");
  const absl::Status status = store->Save(desired);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(file + ".new"));
  EXPECT_EQ(Read(), before);
  EXPECT_EQ(store->Merge({}), TwoServices());
}

TEST_F(StoreTest, WhatACrashLeftHalfWrittenIsWrittenOver) {
  Write("");
  std::filesystem::remove(file);
  std::ofstream(file + ".new") << "version: 1\nservi";
  const auto store = Open();
  store->Rebase({});
  ASSERT_TRUE(store->Save(TwoServices()).ok());
  EXPECT_EQ(Open()->Merge({}), TwoServices());
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
}

TEST_F(StoreTest, AFileThatCannotBeUnderstoodIsKeptAndNamed) {
  const auto whole = [this] {
    const auto store = Open();
    store->Rebase({});
    EXPECT_TRUE(store->Save(TwoServices()).ok());
    return Read();
  }();
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("version: 9\n"),
        std::string("interfaces: [eth0]\n"), std::string(4096, '\0')}) {
    Write(text);
    const absl::Status status = FileStore::Open(state).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(file));
    EXPECT_THAT(status.message(), HasSubstr("move it away"));
    EXPECT_EQ(Read(), text);
  }
}

TEST_F(StoreTest, AFileThatCannotBeReadIsAnErrorNotAnEmptyStore) {
  std::filesystem::create_directories(file);  // a directory in its place
  const absl::Status status = FileStore::Open(state).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(file));
}

TEST_F(StoreTest, ADirectoryThatCannotBeMadeIsNamed) {
  std::ofstream(directory / "deep") << "a file";
  const absl::Status status = FileStore::Open(state).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(state));
}

}  // namespace
}  // namespace unpin
