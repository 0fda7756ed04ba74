// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/availability.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace unpin {
namespace {

using testing::Each;
using testing::ElementsAre;
using enum BackendRow::State;

constexpr BackendCondition kWell = {.wanted = true, .health = Health::kUp, .ejected = false};
constexpr BackendCondition kUnwanted = {.wanted = false, .health = Health::kUp, .ejected = false};
constexpr BackendCondition kOutlier = {.wanted = true, .health = Health::kUp, .ejected = true};
constexpr BackendCondition Ill(Health health) {
  return {.wanted = true, .health = health, .ejected = false};
}
constexpr BackendCondition kLost = Ill(Health::kSilent);
constexpr BackendCondition kStopped = Ill(Health::kRefusing);
constexpr BackendCondition kLeaving = Ill(Health::kUnwell);
constexpr BackendCondition kNew = Ill(Health::kAwaited);

std::vector<BackendRow::State> StatesOf(std::vector<BackendCondition> backends) {
  return Availability(backends);
}

TEST(Availability, OffersAllThatAreWantedAndUp) {
  EXPECT_THAT(StatesOf({kWell, kWell, kUnwanted}), ElementsAre(kServing, kServing, kDraining));
}

TEST(Availability, GivesUpSilentBackendsOnly) {
  EXPECT_THAT(StatesOf({kWell, kWell, kWell, kWell, kLost}),
              ElementsAre(kServing, kServing, kServing, kServing, kDown));
  EXPECT_THAT(StatesOf({kWell, kWell, kWell, kLeaving, kStopped, kNew}),
              ElementsAre(kServing, kServing, kServing, kDraining, kDraining, kDraining))
      << "they end what they have begun, or their kernel resets it";
}

TEST(Availability, GivesUpADrainingBackendWhoseHostIsLost) {
  EXPECT_THAT(StatesOf({kWell, {.wanted = false, .health = Health::kSilent, .ejected = false}}),
              ElementsAre(kServing, kDown));
}

TEST(Availability, HalfOfThemUpIsNoPanic) {
  EXPECT_THAT(StatesOf({kWell, kLost}), ElementsAre(kServing, kDown));
  EXPECT_THAT(StatesOf({kWell, kWell, kLost, kLost}),
              ElementsAre(kServing, kServing, kDown, kDown));
}

TEST(Availability, InPanicSilentAndUnwellBackendsAreOfferedButNotThoseThatRefuse) {
  EXPECT_THAT(StatesOf({kWell, kLost, kLost}), ElementsAre(kServing, kServing, kServing));
  EXPECT_THAT(StatesOf({kWell, kLeaving, kLost}), ElementsAre(kServing, kServing, kServing));
  EXPECT_THAT(StatesOf({kWell, kStopped, kStopped}), ElementsAre(kServing, kDraining, kDraining));
}

TEST(Availability, IfAllAreDownAllAreOffered) {
  EXPECT_THAT(StatesOf({kLost, kLost}), Each(kServing))
      << "our own link may be the one that is down";
  EXPECT_THAT(StatesOf({kStopped, kStopped}), Each(kServing));
  EXPECT_THAT(StatesOf({kStopped, kLost, kUnwanted}), ElementsAre(kDraining, kServing, kDraining));
}

TEST(Availability, UnwantedBackendsDoNotCountTowardsPanic) {
  const BackendCondition drained_and_lost = {
      .wanted = false, .health = Health::kSilent, .ejected = false};
  EXPECT_THAT(StatesOf({kWell, drained_and_lost, drained_and_lost}),
              ElementsAre(kServing, kDown, kDown));
}

TEST(Availability, NewcomersWaitAndDoNotCountTowardsPanic) {
  EXPECT_THAT(StatesOf({kWell, kNew, kNew, kNew}),
              ElementsAre(kServing, kDraining, kDraining, kDraining));
  EXPECT_THAT(StatesOf({kLost, kNew}), ElementsAre(kServing, kDraining));
}

TEST(Availability, NewcomersAreOfferedIfThereIsNobodyElse) {
  EXPECT_THAT(StatesOf({kNew, kNew}), Each(kServing));
  EXPECT_THAT(StatesOf({kUnwanted, kNew}), ElementsAre(kDraining, kServing));
}

TEST(Availability, OutliersAreSparedUnlessNobodyElseIsLeft) {
  EXPECT_THAT(StatesOf({kWell, kOutlier}), ElementsAre(kServing, kDraining));
  EXPECT_THAT(StatesOf({kOutlier, kOutlier}), Each(kServing));
  EXPECT_THAT(StatesOf({kUnwanted, kOutlier}), ElementsAre(kDraining, kServing));
}

TEST(Availability, NothingWantedNothingOffered) {
  EXPECT_THAT(StatesOf({}), testing::IsEmpty());
  EXPECT_THAT(StatesOf({kUnwanted, kUnwanted}), Each(kDraining));
}

}  // namespace
}  // namespace unpin
