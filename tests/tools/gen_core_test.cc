// SPDX-License-Identifier: Apache-2.0
// The generator's pure parts: histogram, rates and schedules, the worker pool, the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "tools/unpin-gen/arrivals.h"
#include "tools/unpin-gen/histogram.h"
#include "tools/unpin-gen/recorder.h"
#include "tools/unpin-gen/report_text.h"
#include "tools/unpin-gen/worker_pool.h"

namespace unpin::gen {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Histogram, PercentilesAreThoseOfTheSortedValuesWithinTheBinWidth) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Histogram histogram;
  std::vector<int64_t> values;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(random() >> (10 + random() % 50));
    histogram.Add(Duration(values.back()));
  }
  std::sort(values.begin(), values.end());

  for (const double percent : {0.01, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const int64_t exact = values[std::max<size_t>(std::ceil(values.size() * percent / 100), 1) - 1];
    const int64_t got = histogram.Percentile(percent).count();
    EXPECT_GE(got, exact) << percent;
    EXPECT_LE(got, exact + exact / 256) << percent;
  }
  EXPECT_EQ(histogram.min().count(), values.front());
  EXPECT_EQ(histogram.max().count(), values.back());
}

TEST(Histogram, SmallValuesAreExactAndBinsCountEverything) {
  Histogram histogram;
  for (const int ns : {0, 1, 255, 256, 256, -5}) histogram.Add(Duration(ns));
  EXPECT_EQ(histogram.Mean(), Duration(128));  // (0 + 1 + 255 + 512 + 0) / 6
  uint64_t sum = 0;
  for (const Histogram::Bin& bin : histogram.Bins()) sum += bin.count;
  EXPECT_EQ(sum, 6u);
  EXPECT_EQ(histogram.Percentile(50), Duration(1));
  EXPECT_EQ(Histogram().Percentile(99), Duration(0));
}

TEST(Rates, EqualZipfAndListsAddUpToTheTotal) {
  EXPECT_THAT(*PlanRates({.shape = "equal", .connections = 4, .total_rps = 100}),
              ElementsAre(25, 25, 25, 25));
  // 1 + 1/2 + 1/3 = 11/6
  EXPECT_THAT(*PlanRates({.shape = "zipf:1", .connections = 3, .total_rps = 110}),
              ElementsAre(DoubleEq(60), DoubleEq(30), DoubleEq(20)));
  EXPECT_THAT(*PlanRates({.shape = "3,1", .connections = {}, .total_rps = 40}),
              ElementsAre(30, 10));
  EXPECT_THAT(*PlanRates({.shape = "3,0,1.5", .connections = {}, .total_rps = {}}),
              ElementsAre(3, 0, 1.5));
}

TEST(Rates, RefusalsNameWhatIsWrong) {
  const auto message = [](const RateOptions& options) {
    return std::string(PlanRates(options).status().message());
  };
  EXPECT_THAT(message({.shape = "zipf:x", .connections = {}, .total_rps = {}}), HasSubstr("'x'"));
  EXPECT_THAT(message({.shape = "5,,1", .connections = {}, .total_rps = {}}), HasSubstr("''"));
  EXPECT_THAT(message({.shape = "-1", .connections = {}, .total_rps = {}}), HasSubstr("'-1'"));
  EXPECT_THAT(message({.shape = "0,0", .connections = {}, .total_rps = {}}),
              HasSubstr("all of them"));
  EXPECT_THAT(message({.shape = "1,2", .connections = 3, .total_rps = {}}), HasSubstr("2 entries"));
  EXPECT_THAT(message({.shape = "equal", .connections = 0, .total_rps = {}}),
              HasSubstr("0 of them"));
  EXPECT_THAT(message({.shape = "equal", .connections = 1, .total_rps = 0}), HasSubstr("positive"));
}

TEST(Rates, ShufflingPermutesAndDependsOnTheSeedOnly) {
  std::vector<double> rates(50);
  std::iota(rates.begin(), rates.end(), 0.0);
  std::vector<double> first = rates, again = rates, other = rates;
  Shuffle(first, 1);
  Shuffle(again, 1);
  Shuffle(other, 2);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  EXPECT_NE(first, rates);
  EXPECT_THAT(first, testing::UnorderedElementsAreArray(rates));
}

TEST(Schedule, PoissonArrivalsComeInOrderWithExponentialGapsAtEachRate) {
  constexpr uint32_t kSeed = 7;
  Schedule schedule({300, 0, 100}, Spacing::kPoisson, kSeed);
  std::vector<std::vector<double>> times(3);
  Duration last{0};
  while (last < seconds(100)) {
    const Arrival arrival = schedule.Next();
    ASSERT_GE(arrival.at, last);
    last = arrival.at;
    times[arrival.connection].push_back(std::chrono::duration<double>(arrival.at).count());
  }
  EXPECT_NEAR(times[0].size(), 30'000, 700);  // 4 standard deviations
  EXPECT_EQ(times[1].size(), 0u);
  EXPECT_NEAR(times[2].size(), 10'000, 400);

  // Exponential: as likely above the mean as e^-1.
  int above = 0;
  for (size_t i = 1; i < times[0].size(); ++i) above += times[0][i] - times[0][i - 1] > 1.0 / 300;
  EXPECT_NEAR(above / 30'000.0, 0.3679, 0.015);
}

TEST(Schedule, UniformArrivalsOfEqualRatesTakeTurns) {
  Schedule schedule({50, 50}, Spacing::kUniform, 1);
  for (int i = 0; i < 10; ++i) {
    const Arrival arrival = schedule.Next();
    EXPECT_EQ(arrival.at, milliseconds(10) * i);
    EXPECT_EQ(arrival.connection, static_cast<size_t>(i % 2));
  }
}

class Pool : public testing::Test {
 protected:
  static TimePoint At(int ms) { return TimePoint(seconds(1000)) + milliseconds(ms); }
  void Submit(int ms, int id, std::optional<Duration> own = {}) {
    pool_.Submit(At(ms), own, [this, id] { ended_.push_back(id); });
  }
  std::vector<int> EndedBy(int ms) {
    ended_.clear();
    for (const Job& job : pool_.TakeEnded(At(ms))) job();
    return ended_;
  }

  WorkerPool pool_{2, milliseconds(10)};
  std::vector<int> ended_;
};

TEST_F(Pool, QueuesBeyondItsWorkersAndKeepsTheirCapacityThoughLookedAtLate) {
  for (int id = 1; id <= 5; ++id) Submit(0, id);
  EXPECT_EQ(pool_.queued(), 3u);
  EXPECT_EQ(pool_.NextEnd(), At(10));
  EXPECT_THAT(EndedBy(9), ElementsAre());
  EXPECT_THAT(EndedBy(10), ElementsAre(1, 2));
  EXPECT_THAT(EndedBy(35), ElementsAre(3, 4, 5));  // at 20, 20 and 30
  EXPECT_EQ(pool_.NextEnd(), std::nullopt);
  EXPECT_EQ(pool_.GetUsage(At(40)).busy, milliseconds(50));
  EXPECT_EQ(pool_.GetUsage(At(40)).ended, 5u);
}

TEST_F(Pool, AJobSubmittedAfterAnUnseenEndStartsAtOnce) {
  Submit(0, 1);
  Submit(0, 2);
  Submit(25, 3);
  EXPECT_EQ(pool_.queued(), 0u);
  EXPECT_THAT(EndedBy(34), ElementsAre(1, 2));
  EXPECT_THAT(EndedBy(35), ElementsAre(3));
}

TEST_F(Pool, ChangesHoldForJobsNotYetBegun) {
  for (int id = 1; id <= 4; ++id) Submit(0, id);
  pool_.SetServiceTime(milliseconds(100));
  Submit(0, 5, milliseconds(1));
  EXPECT_THAT(EndedBy(10), ElementsAre(1, 2));
  EXPECT_THAT(EndedBy(109), ElementsAre());
  EXPECT_THAT(EndedBy(110), ElementsAre(3, 4));
  EXPECT_THAT(EndedBy(111), ElementsAre(5));
}

TEST_F(Pool, MoreWorkersTakeUpTheQueueAndFewerFinishWhatTheyHave) {
  for (int id = 1; id <= 6; ++id) Submit(0, id);
  pool_.SetWorkers(At(5), 3);
  EXPECT_EQ(pool_.queued(), 3u);
  pool_.SetWorkers(At(6), 1);
  EXPECT_THAT(EndedBy(10), ElementsAre(1, 2));
  EXPECT_THAT(EndedBy(15), ElementsAre(3));
  EXPECT_THAT(EndedBy(24), ElementsAre());
  EXPECT_THAT(EndedBy(25), ElementsAre(4));
  EXPECT_EQ(pool_.TakeAll(At(26)).size(), 2u);
  EXPECT_EQ(pool_.NextEnd(), std::nullopt);
}

Outcome Success(size_t connection, int scheduled_ms, int ended_ms, std::string backend,
                std::string peer) {
  return {.connection = connection,
          .scheduled = milliseconds(scheduled_ms),
          .ended = milliseconds(ended_ms),
          .backend = std::move(backend),
          .peer = std::move(peer),
          .failure = {},
          .message = {}};
}

v1::LoadReport SmallReport() {
  Recorder recorder({2, 1}, seconds(1), 3);
  for (const int ms : {100, 200, 1100}) recorder.Sent(0, milliseconds(ms), milliseconds(1));
  for (const int ms : {300, 1300}) recorder.Sent(1, milliseconds(ms), milliseconds(4));
  recorder.Ended(Success(0, 100, 110, "b1", "p1"));
  recorder.Ended(Success(0, 1100, 1130, "b2", "p2"));
  // The old connection's last answer is no second reconnect.
  recorder.Ended(Success(0, 200, 1150, "b1", "p1"));
  recorder.Ended(Success(1, 300, 310, "b2", "p3"));
  Outcome failed = Success(1, 1300, 1900, "", "");
  failed.failure = "UNAVAILABLE";
  failed.message = "socket closed";
  recorder.Ended(failed);
  return recorder.Report(seconds(2));
}

TEST(Recorder, CountsByBackendConnectionAndTimeOfSchedule) {
  const v1::LoadReport report = SmallReport();
  EXPECT_EQ(report.totals().sent(), 5u);
  EXPECT_EQ(report.totals().succeeded(), 4u);
  EXPECT_EQ(report.totals().failed(), 1u);
  EXPECT_EQ(report.totals().reconnects(), 1u);
  EXPECT_EQ(report.totals().succeeded_per_s(), 2);

  ASSERT_EQ(report.backends_size(), 2);
  EXPECT_EQ(report.backends(0).name(), "b1");
  EXPECT_EQ(report.backends(0).share(), 0.5);
  EXPECT_DOUBLE_EQ(report.max_over_mean(), 1.5);  // 2 of 4, over three backends expected

  ASSERT_EQ(report.series_size(), 2);
  EXPECT_THAT(report.series(0).backends(), UnorderedElementsAre(Pair("b1", 2), Pair("b2", 1)));
  EXPECT_THAT(report.series(0).max_over_mean(), DoubleEq(2));
  EXPECT_EQ(report.series(0).worst_ms(), 950);
  EXPECT_EQ(report.series(1).sent(), 2u);
  EXPECT_EQ(report.series(1).failed(), 1u);

  EXPECT_EQ(report.connections(0).rate_rps(), 2);
  EXPECT_EQ(report.connections(0).reconnects(), 1u);
  EXPECT_THAT(report.connections(0).backends(), UnorderedElementsAre(Pair("b1", 2), Pair("b2", 1)));
  EXPECT_EQ(report.connections(1).failed(), 1u);
}

TEST(Recorder, LatencyCountsFromTheScheduleAndFailuresKeepTheirTimes) {
  const v1::LoadReport report = SmallReport();
  EXPECT_EQ(report.latency().worst_ms(), 950);
  EXPECT_EQ(report.latency().min_ms(), 10);
  EXPECT_EQ(report.latency().mean_ms(), 250);  // (10 + 30 + 950 + 10) / 4
  EXPECT_EQ(report.worst_send_lag_ms(), 4);

  EXPECT_THAT(report.failures().by_code(), ElementsAre(Pair("UNAVAILABLE", 1)));
  EXPECT_EQ(report.failures().first_scheduled_s(), 1.3);
  EXPECT_EQ(report.failures().last_ended_s(), 1.9);
  ASSERT_EQ(report.failures().events_size(), 1);
  EXPECT_EQ(report.failures().events(0).connection(), 1u);
  EXPECT_EQ(report.failures().events(0).message(), "socket closed");
}

TEST(ReportText, CsvHasARowABucketAndAColumnABackend) {
  EXPECT_EQ(FormatCsv(SmallReport()),
            "begin_s,sent,succeeded,failed,mean_ms,worst_ms,max_over_mean,b1,b2\n"
            "0.000,3,3,0,323.333,950.000,2.000,2,1\n"
            "1.000,2,1,1,30.000,30.000,3.000,0,1\n");
}

TEST(ReportText, JsonPrintsProtoNamesPlainNumbersAndDefaults) {
  const std::string json = *FormatJson(SmallReport());
  EXPECT_THAT(json, HasSubstr("\"sent\": 5"));
  EXPECT_THAT(json, HasSubstr("\"worst_send_lag_ms\": 4"));
  EXPECT_THAT(json, HasSubstr("\"begin_s\": 0,"));
}

TEST(ReportText, LiveLineShowsTheSharesSinceTheLineBefore) {
  const Progress before{.sent = 100, .failed = 1, .backends = {{"b2", 90}}};
  const Progress now{.sent = 150, .failed = 3, .backends = {{"b1", 30}, {"b2", 100}}};
  EXPECT_EQ(
      FormatLive(seconds(2), before, now, 2),
      "   2.0 s  sent     50  answered     40  failed    2   b1  75.0%  b2  25.0%  max/mean 1.50");
}

}  // namespace
}  // namespace unpin::gen
