// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/outlier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace unpin {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

OutlierSettings Settings() {
  OutlierSettings settings;
  settings.latency_factor = 5;
  return settings;
}

TimePoint At(int s) { return TimePoint(seconds(1000 + s)); }

// Backends 1, 2, ... with these latencies in milliseconds.
std::vector<OutlierSample> Latencies(const std::vector<double>& ms) {
  std::vector<OutlierSample> samples;
  for (const double latency : ms) {
    samples.push_back({.backend = static_cast<BackendId>(samples.size() + 1),
                       .latency_s = latency / 1000,
                       .requests = 100});
  }
  return samples;
}

TEST(Outlier, EjectsTheOneThatIsManyTimesSlowerThanTheMedianOfTheOthers) {
  Outlier outlier;
  EXPECT_THAT(outlier.Judge(Latencies({20, 20, 200}), Settings(), At(0)), ElementsAre(3));
  EXPECT_TRUE(outlier.IsEjected(3, At(0)));
  EXPECT_FALSE(outlier.IsEjected(1, At(0)));
}

TEST(Outlier, LeavesThoseAloneThatAreSlowTogether) {
  Outlier outlier;
  EXPECT_THAT(outlier.Judge(Latencies({200, 220, 190}), Settings(), At(0)), IsEmpty());
  EXPECT_THAT(outlier.Judge(Latencies({20, 200, 200}), Settings(), At(0)), IsEmpty());
}

TEST(Outlier, JudgesNobodyByFewRequestsOrBySmallNumbers) {
  Outlier outlier;
  std::vector<OutlierSample> few = Latencies({20, 20, 2000});
  few[2].requests = 1;
  EXPECT_THAT(outlier.Judge(few, Settings(), At(0)), IsEmpty());
  EXPECT_THAT(outlier.Judge(Latencies({0.1, 0.1, 15}), Settings(), At(0)), IsEmpty());
  EXPECT_THAT(outlier.Judge(Latencies({0, 0, 2000}), Settings(), At(0)), IsEmpty())
      << "nobody to compare it with";
}

TEST(Outlier, IsOffUnlessAFactorIsSet) {
  Outlier outlier;
  EXPECT_THAT(outlier.Judge(Latencies({20, 20, 9000}), OutlierSettings{}, At(0)), IsEmpty());
}

// gRFC A50: base time times the number of ejections, at most the longest.
TEST(Outlier, StaysOutLongerEachTime) {
  Outlier outlier;
  const std::vector<OutlierSample> samples = Latencies({20, 20, 200});
  int now = 0;
  for (const int expected : {30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300}) {
    ASSERT_THAT(outlier.Judge(samples, Settings(), At(now)), ElementsAre(3));
    EXPECT_EQ(outlier.NextEnd(At(now)), At(now + expected));
    EXPECT_TRUE(outlier.IsEjected(3, At(now + expected - 1)));
    EXPECT_FALSE(outlier.IsEjected(3, At(now + expected)));
    now += expected + 1;
  }
}

TEST(Outlier, ForgivesWhoWasWellForAsLongAsItWasOut) {
  Outlier outlier;
  ASSERT_THAT(outlier.Judge(Latencies({20, 20, 200}), Settings(), At(0)), ElementsAre(3));
  ASSERT_THAT(outlier.Judge(Latencies({20, 20, 20}), Settings(), At(60)), IsEmpty());
  ASSERT_THAT(outlier.Judge(Latencies({20, 20, 200}), Settings(), At(61)), ElementsAre(3));
  EXPECT_FALSE(outlier.IsEjected(3, At(61 + 30)));
}

TEST(Outlier, EjectsNoMoreThanTheShareAllowedTheSlowestFirst) {
  Outlier outlier;
  std::vector<double> latencies(20, 20);
  latencies[0] = 200;
  latencies[5] = 400;
  latencies[9] = 300;
  EXPECT_THAT(outlier.Judge(Latencies(latencies), Settings(), At(0)), ElementsAre(6, 10))
      << "10 % of 20";
  EXPECT_THAT(outlier.Judge(Latencies(latencies), Settings(), At(1)), IsEmpty());
}

TEST(Outlier, OneMayAlwaysBeEjectedButNeverTheLast) {
  Outlier two;
  EXPECT_THAT(two.Judge(Latencies({20, 200}), Settings(), At(0)), ElementsAre(2));
  EXPECT_THAT(two.Judge(Latencies({2000, 200}), Settings(), At(1)), IsEmpty());
  Outlier one;
  EXPECT_THAT(one.Judge(Latencies({2000}), Settings(), At(0)), IsEmpty());
}

TEST(Outlier, NoEjectionNoEnd) { EXPECT_EQ(Outlier().NextEnd(At(0)), TimePoint::max()); }

}  // namespace
}  // namespace unpin
