// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/health_state.h"

#include "gtest/gtest.h"
#include "userspace/policy/probe_pace.h"

namespace unpin {
namespace {

using std::chrono::milliseconds;

ProbeResult Good() { return {.backend = 1, .found = Health::kUp, .decisive = false, .detail = {}}; }
ProbeResult Bad(Health found, bool decisive = false) {
  return {.backend = 1, .found = found, .decisive = decisive, .detail = "x"};
}

TEST(HealthState, CountsAsUpUntilProbesSayOtherwise) {
  EXPECT_EQ(HealthState().health(), Health::kUp);
}

TEST(HealthState, FallsAfterSoManyFailuresOnEnd) {
  HealthState state;
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 3));
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 3));
  EXPECT_TRUE(state.OnProbe(Bad(Health::kSilent), 2, 3));
  EXPECT_EQ(state.health(), Health::kSilent);
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 3)) << "no news";
}

// loxilb#810: failures were summed up over days.
TEST(HealthState, AGoodProbeInBetweenStartsTheCountAgain) {
  HealthState state;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 2));
    EXPECT_FALSE(state.OnProbe(Good(), 2, 2));
  }
  EXPECT_EQ(state.health(), Health::kUp);
}

TEST(HealthState, RisesAfterSoManySuccessesOnEnd) {
  HealthState state;
  state.OnProbe(Bad(Health::kSilent), 3, 1);
  ASSERT_EQ(state.health(), Health::kSilent);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(state.OnProbe(Good(), 3, 1));
    EXPECT_FALSE(state.OnProbe(Good(), 3, 1));
    EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 3, 1));
  }
  EXPECT_FALSE(state.OnProbe(Good(), 3, 1));
  EXPECT_FALSE(state.OnProbe(Good(), 3, 1));
  EXPECT_TRUE(state.OnProbe(Good(), 3, 1));
  EXPECT_EQ(state.health(), Health::kUp);
}

TEST(HealthState, ARefusalNeedsNoSecondOpinion) {
  HealthState state;
  EXPECT_TRUE(state.OnProbe(Bad(Health::kRefusing, true), 2, 5));
  EXPECT_EQ(state.health(), Health::kRefusing);
}

TEST(HealthState, FailuresOfDifferentKindsCountTogetherAndTheLastNamesTheState) {
  HealthState state;
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 2));
  EXPECT_TRUE(state.OnProbe(Bad(Health::kUnwell), 2, 2));
  EXPECT_EQ(state.health(), Health::kUnwell);
}

TEST(HealthState, AHostThatIsLostAfterItRefusedIsSilent) {
  HealthState state;
  state.OnProbe(Bad(Health::kRefusing, true), 2, 2);
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 2, 2));
  EXPECT_TRUE(state.OnProbe(Bad(Health::kSilent), 2, 2));
  EXPECT_EQ(state.health(), Health::kSilent);
}

TEST(HealthState, ANewcomerIsUpAtItsFirstGoodProbeAndAwaitedUntilThen) {
  HealthState state = HealthState::Awaited();
  EXPECT_FALSE(state.OnProbe(Bad(Health::kRefusing, true), 3, 1));
  EXPECT_FALSE(state.OnProbe(Bad(Health::kSilent), 3, 1));
  EXPECT_EQ(state.health(), Health::kAwaited);
  EXPECT_TRUE(state.OnProbe(Good(), 3, 1));
  EXPECT_EQ(state.health(), Health::kUp);
}

HealthSettings Settings() {
  HealthSettings settings;
  settings.interval = milliseconds(500);
  settings.timeout = milliseconds(250);
  settings.fall = 3;
  return settings;
}

TEST(NextProbe, ComesAfterTheIntervalGiveOrTakeATenth) {
  const TimePoint begun(milliseconds(1000));
  EXPECT_EQ(NextProbe({.begun = begun, .failures = 0}, Settings(), 0) - begun, milliseconds(450));
  EXPECT_EQ(NextProbe({.begun = begun, .failures = 0}, Settings(), 0.5) - begun, milliseconds(500));
  EXPECT_EQ(NextProbe({.begun = begun, .failures = 0}, Settings(), 1) - begun, milliseconds(550));
}

TEST(NextProbe, ComesSoonerWhileAFailureIsInDoubt) {
  const TimePoint begun(milliseconds(1000));
  for (const uint32_t failures : {1u, 2u}) {
    EXPECT_EQ(NextProbe({.begun = begun, .failures = failures}, Settings(), 0.5) - begun,
              milliseconds(250));
  }
  EXPECT_EQ(NextProbe({.begun = begun, .failures = 3}, Settings(), 0.5) - begun, milliseconds(500));
}

TEST(NextProbe, IsNeverLaterForALongTimeout) {
  HealthSettings settings = Settings();
  settings.timeout = std::chrono::seconds(5);
  const TimePoint begun(milliseconds(1000));
  EXPECT_EQ(NextProbe({.begun = begun, .failures = 1}, settings, 0.5) - begun, milliseconds(500));
}

}  // namespace
}  // namespace unpin
