// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/maglev_table.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"

namespace unpin {
namespace {

constexpr uint32_t kSlots = 65537;

Endpoint BackendEndpoint(uint32_t number) {
  return Endpoint{.address = {0x0a010000 + number / 8},
                  .port = static_cast<uint16_t>(50000 + number % 8)};
}

std::vector<WeightedBackend> Backends(uint32_t count, uint32_t weight = 100) {
  std::vector<WeightedBackend> backends;
  for (uint32_t i = 0; i < count; ++i) {
    backends.push_back(
        {.id = i + 1, .identity = BackendIdentity(BackendEndpoint(i)), .weight = weight});
  }
  return backends;
}

std::map<BackendId, uint32_t> Shares(const std::vector<BackendId>& table) {
  std::map<BackendId, uint32_t> shares;
  for (BackendId id : table) ++shares[id];
  return shares;
}

// Each backend's slots differ from its exact share by less than 1 % of it, or by the two slots that no table can
// give more finely.
void ExpectSharesFollowWeights(const std::vector<WeightedBackend>& backends) {
  uint64_t total = 0;
  for (const WeightedBackend& backend : backends) total += backend.weight;
  const auto table = BuildMaglevTable(backends, kSlots);
  ASSERT_EQ(table.size(), kSlots);
  auto shares = Shares(table);
  for (const WeightedBackend& backend : backends) {
    const double exact = static_cast<double>(kSlots) * backend.weight / static_cast<double>(total);
    EXPECT_NEAR(shares[backend.id], exact, std::max(2.0, exact / 100))
        << "weight " << backend.weight;
  }
}

TEST(MaglevTable, SharesOfEqualBackendsAreEvenWithinOnePercent) {
  for (uint32_t count : {1u, 2u, 3u, 7u, 10u, 100u, 500u}) {
    const auto shares = Shares(BuildMaglevTable(Backends(count), kSlots));
    ASSERT_EQ(shares.size(), count);
    const auto [least, most] =
        std::ranges::minmax_element(shares, {}, [](const auto& entry) { return entry.second; });
    const double mean = static_cast<double>(kSlots) / count;
    EXPECT_GE(least->second, mean * 0.99) << count << " backends";
    EXPECT_LE(most->second, mean * 1.01) << count << " backends";
  }
}

TEST(MaglevTable, SharesFollowWeightsWithinOnePercent) {
  auto backends = Backends(4);
  backends[3].weight = 300;
  ExpectSharesFollowWeights(backends);
  backends[0].weight = 65535;
  backends[1].weight = 1;
  ExpectSharesFollowWeights(backends);

  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 10; ++round) {
    auto some = Backends(2 + random() % 60);
    for (WeightedBackend& backend : some) backend.weight = 1 + random() % 1000;
    ExpectSharesFollowWeights(some);
  }
}

TEST(MaglevTable, LosingOneOfAHundredMovesLittleElse) {
  const auto all = Backends(100);
  const auto before = BuildMaglevTable(all, kSlots);
  for (size_t lost = 0; lost < all.size(); lost += 9) {
    auto rest = all;
    rest.erase(rest.begin() + static_cast<long>(lost));
    const auto after = BuildMaglevTable(rest, kSlots);
    uint32_t moved = 0;
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (before[slot] != all[lost].id && before[slot] != after[slot]) ++moved;
    }
    EXPECT_LE(moved, kSlots / 20) << "without backend " << all[lost].id;
  }
}

TEST(MaglevTable, OrderOfBackendsDoesNotMatter) {
  auto backends = Backends(50);
  for (size_t i = 0; i < backends.size(); ++i)
    backends[i].weight = 50 + static_cast<uint32_t>(i) * 3;
  const auto table = BuildMaglevTable(backends, kSlots);
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(backends.begin(), backends.end(), random);
    EXPECT_EQ(BuildMaglevTable(backends, kSlots), table);
  }
}

TEST(MaglevTable, GatewaysWithOtherIdsSteerAlike) {
  const auto ours = Backends(20);
  auto theirs = ours;
  for (WeightedBackend& backend : theirs) backend.id = 1000 - backend.id;
  const auto our_table = BuildMaglevTable(ours, kSlots);
  const auto their_table = BuildMaglevTable(theirs, kSlots);
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    ASSERT_EQ(our_table[slot], 1000 - their_table[slot]);
}

TEST(MaglevTable, EveryPrimeSizeIsFilled) {
  for (uint32_t slots : {2u, 3u, 5u, 13u, 251u, 4093u}) {
    const auto table = BuildMaglevTable(Backends(3), slots);
    EXPECT_EQ(table.size(), slots);
    EXPECT_EQ(std::ranges::count(table, 0u), 0) << slots << " slots";
  }
}

TEST(MaglevTable, BackendsOfWeightZeroGetNoSlot) {
  auto backends = Backends(3);
  backends[1].weight = 0;
  const auto shares = Shares(BuildMaglevTable(backends, kSlots));
  EXPECT_EQ(shares.size(), 2u);
  EXPECT_FALSE(shares.contains(backends[1].id));
}

TEST(MaglevTable, NoBackendsNoTable) {
  EXPECT_TRUE(BuildMaglevTable({}, kSlots).empty());
  EXPECT_TRUE(BuildMaglevTable(Backends(3, 0), kSlots).empty());
}

TEST(MaglevTable, AThousandBackendsDoNotHoldUpTheAgent) {
  const auto backends = Backends(1000);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(BuildMaglevTable(backends, kSlots).size(), kSlots);
  // Generous: sanitizers and a busy machine. It catches a quadratic table, which takes seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

// By an independent implementation of the same published function (MurmurHash3's 64-bit finalizer).
TEST(BackendIdentity, IsTheSameInEveryBuild) {
  EXPECT_EQ(BackendIdentity({.address = {0}, .port = 0}), 0x9ca066f1a4ab2eeau);
  EXPECT_EQ(BackendIdentity({.address = {0x0a010102}, .port = 50051}), 0xa1dab021d3195f3eu);
}

TEST(BackendIdentity, DiffersForNeighbouringEndpoints) {
  std::set<uint64_t> identities;
  for (uint32_t i = 0; i < 20000; ++i) identities.insert(BackendIdentity(BackendEndpoint(i)));
  EXPECT_EQ(identities.size(), 20000u);
}

}  // namespace
}  // namespace unpin
