// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/agent/desired.h"

namespace unpin {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr DesiredLimits kLimits = {.services = 1024, .backends = 16383, .snat_addresses = 1};

absl::Status Validate(const Desired& desired, const DesiredLimits& limits = kLimits) {
  return ValidateDesired(desired, limits);
}

TEST(Validate, AGoodStatePasses) {
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_TRUE(Validate(TwoServices()).ok());
}

TEST(Validate, NamesAreOneToSixtyThreeOfTheAlphabet) {
  for (const std::string& name : {std::string("a"), std::string("a-1"), std::string(63, 'x')}) {
    EXPECT_TRUE(Validate({{name, ServiceOf(name, Vip(1), {})}}).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(64, 'x'), std::string("A"), std::string("a b"),
        std::string("a_b"), std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    const absl::Status status = Validate({{name, ServiceOf(name, Vip(1), {})}});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(status.message(), HasSubstr("service name"));
  }
}

TEST(Validate, AnEndpointIsAHostAndAPort) {
  Desired desired = TwoServices();
  desired.at("alpha").spec.vip.port = 0;
  EXPECT_THAT(Validate(desired).message(),
              AllOf(HasSubstr("service alpha: vip"), HasSubstr("port 0")));
  desired = TwoServices();
  desired.at("alpha").spec.vip.address = {};
  EXPECT_THAT(Validate(desired).message(),
              AllOf(HasSubstr("service alpha: vip"), HasSubstr("0.0.0.0")));
  for (const Endpoint& bad : {Endpoint{{0x0a010102}, 0}, Endpoint{{0}, 80}}) {
    desired = TwoServices();
    desired.at("beta").backends[bad] = {.endpoint = bad, .weight = 1, .draining = false};
    const absl::Status status = Validate(desired);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("service beta"), HasSubstr(bad.ToString())));
  }
}

TEST(Validate, AWeightFitsSixteenBits) {
  Desired desired = TwoServices();
  desired.at("alpha").backends.at(Backend(1)).weight = 65535;
  EXPECT_TRUE(Validate(desired).ok());
  desired.at("alpha").backends.at(Backend(1)).weight = 65536;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(desired)));
  EXPECT_THAT(Validate(desired).message(), HasSubstr("weight: 65536"));
}

TEST(Validate, TwoServicesShareNoVip) {
  Desired desired = TwoServices();
  desired.at("beta").spec.vip = desired.at("alpha").spec.vip;
  EXPECT_TRUE(absl::IsAlreadyExists(Validate(desired)));
  EXPECT_THAT(Validate(desired).message(),
              AllOf(HasSubstr("alpha"), HasSubstr("beta"), HasSubstr("10.9.0.1:50051")));
  desired.at("beta").spec.vip.port = 50052;
  EXPECT_TRUE(Validate(desired).ok());
}

TEST(Validate, NoBackendIsAVip) {
  Desired desired = TwoServices();
  desired.at("alpha").backends[Vip(2)] = {.endpoint = Vip(2), .weight = 1, .draining = false};
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(desired)));
  EXPECT_THAT(Validate(desired).message(),
              AllOf(HasSubstr("alpha"), HasSubstr("VIP of service beta")));
}

TEST(Validate, SnatNeedsAnAddress) {
  const absl::Status status = Validate(TwoServices(), {.snat_addresses = 0});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("snat.addresses"));
  Desired desired = {{"alpha", ServiceOf("alpha", Vip(1), {1})}};
  desired.at("alpha").spec.snat = false;
  EXPECT_TRUE(Validate(desired, {.snat_addresses = 0}).ok());
}

TEST(Validate, WhatDoesNotFitIsCounted) {
  const absl::Status services = Validate(TwoServices(), {.services = 1, .snat_addresses = 1});
  EXPECT_TRUE(absl::IsResourceExhausted(services)) << services;
  EXPECT_THAT(services.message(), HasSubstr("2 are more than 1"));
  const absl::Status backends = Validate(TwoServices(), {.backends = 4, .snat_addresses = 1});
  EXPECT_TRUE(absl::IsResourceExhausted(backends)) << backends;
  EXPECT_THAT(backends.message(), HasSubstr("5 are more than 4"));
  EXPECT_TRUE(Validate(TwoServices(), {.services = 2, .backends = 5, .snat_addresses = 1}).ok());
}

}  // namespace
}  // namespace unpin
