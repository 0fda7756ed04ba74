// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/agent/desired.h"

namespace unpin {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Desired ThroughText(const Desired& file, const Desired& desired) {
  const auto read = ParseOverrides(FormatOverrides(Difference(file, desired)), "o.yaml");
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? Apply(*read, file) : Desired{};
}

std::string ErrorOf(const std::string& text) {
  const absl::Status status = ParseOverrides(text, "o.yaml").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Overrides, NothingChangedIsNothingKept) {
  const Overrides overrides = Difference(TwoServices(), TwoServices());
  EXPECT_TRUE(overrides.services.empty());
  EXPECT_TRUE(overrides.backends.empty());
}

TEST(Overrides, EveryChangeSurvivesTheFile) {
  const Desired file = TwoServices();
  Desired desired = file;
  desired.at("alpha").backends.at(Backend(1)).weight = 7;
  desired.at("alpha").backends.at(Backend(2)).draining = true;
  desired.at("alpha").backends.erase(Backend(3));
  desired.at("alpha").backends[Backend(9)] = {
      .endpoint = Backend(9), .weight = 0, .draining = false};
  desired.erase("beta");
  desired["gamma"] = ServiceOf("gamma", Vip(7), {4});
  desired.at("gamma").spec.snat = false;
  EXPECT_EQ(ThroughText(file, desired), desired);
}

TEST(Overrides, WhatTheApiDidNotTouchFollowsTheFile) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.at(Backend(1)).weight = 7;
  const Overrides overrides = Difference(TwoServices(), desired);

  Desired newer = TwoServices();
  newer.at("alpha").spec.vip = Vip(20);
  newer.at("alpha").backends.at(Backend(2)).weight = 55;
  newer.at("alpha").backends[Backend(8)] = {
      .endpoint = Backend(8), .weight = 100, .draining = false};
  newer.erase("beta");
  Desired wanted = newer;
  wanted.at("alpha").backends.at(Backend(1)).weight = 7;
  EXPECT_EQ(Apply(overrides, newer), wanted);
}

TEST(Overrides, ChangesOfAServiceThatTheFileDroppedAreVoid) {
  Desired desired = TwoServices();
  desired.at("beta").backends.at(Backend(1)).weight = 7;
  const Overrides overrides = Difference(TwoServices(), desired);
  Desired newer = TwoServices();
  newer.erase("beta");
  EXPECT_EQ(Apply(overrides, newer), newer);
}

TEST(Overrides, ARemovedBackendStaysRemovedThoughTheFileStillHasIt) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.erase(Backend(1));
  EXPECT_EQ(Apply(Difference(TwoServices(), desired), TwoServices()), desired);
}

// Apply(Difference(a, b), a) == b whatever a and b are.
TEST(Overrides, AnyDesiredStateComesBackFromItsDifference) {
  const uint32_t seed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const auto any = [&] {
    Desired desired;
    for (const char* name : {"a", "b", "c"}) {
      if (below(3) == 0) continue;
      ServiceWithBackends service;
      service.spec = {
          .name = name, .vip = Vip(static_cast<uint8_t>(1 + below(3))), .snat = below(2) == 0};
      for (uint8_t i = 1; i <= 4; ++i) {
        if (below(2) == 0) continue;
        service.backends[Backend(i)] = {
            .endpoint = Backend(i), .weight = below(3), .draining = below(2) == 0};
      }
      desired[name] = service;
    }
    return desired;
  };
  for (int round = 0; round < 3000; ++round) {
    const Desired file = any(), desired = any();
    ASSERT_EQ(ThroughText(file, desired), desired) << FormatOverrides(Difference(file, desired));
  }
}

TEST(Overrides, DamageIsNoticed) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("o.yaml"));
  EXPECT_THAT(ErrorOf("version: 2\nservices: []\nbackends: []\ncomplete: true\n"),
              StartsWith("o.yaml:1:10: version: 2 is not"));
  EXPECT_THAT(ErrorOf("services: []\nbackends: []\ncomplete: true\n"),
              HasSubstr("version: is missing"));
  EXPECT_THAT(ErrorOf("interfaces: [eth0]\n"),
              StartsWith("o.yaml:1:1: interfaces: is not known here"));
  EXPECT_THAT(ErrorOf("version: 1\nservices:\n- {name: a, vip: 10.9.0.1:x}\n"),
              StartsWith("o.yaml:3:18: services[0].vip: "));
  EXPECT_THAT(ErrorOf("version: 1\nservices:\n- {name: a}\n"),
              StartsWith("o.yaml:3:3: services[0].vip: is missing"));
  EXPECT_THAT(ErrorOf("version: 1\nbackends:\n- {service: a}\n"),
              StartsWith("o.yaml:3:3: backends[0].address: is missing"));
  EXPECT_THAT(ErrorOf("version: 1\nbackends:\n- {address: 1.2.3.4:5}\n"),
              StartsWith("o.yaml:3:3: backends[0].service: is"));
  EXPECT_THAT(ErrorOf("\x7f"
                      "ELF\x02\x01"),
              HasSubstr("o.yaml"));
}

// The write is atomic, but the disk may lose the end of a file all the same.
TEST(Overrides, AnyTruncationIsNoticed) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.at(Backend(1)).weight = 7;
  desired.at("alpha").backends.erase(Backend(2));
  desired.erase("beta");
  desired["gamma"] = ServiceOf("gamma", Vip(7), {4});
  const std::string whole = FormatOverrides(Difference(TwoServices(), desired));
  ASSERT_TRUE(ParseOverrides(whole, "o.yaml").ok());
  for (size_t size = 0; size + 1 < whole.size();
       ++size) {  // without its last line feed it is whole
    EXPECT_FALSE(ParseOverrides(whole.substr(0, size), "o.yaml").ok()) << whole.substr(0, size);
  }
}

}  // namespace
}  // namespace unpin
