// SPDX-License-Identifier: Apache-2.0
// rebalance_sim: does the policy, in virtual time, bring a large service into balance, in few moves, and leave it alone then?
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/rebalance/agent.h"

namespace unpin::sim {
namespace {

constexpr double kTolerance = 0.05;

struct Options {
  bool quick = false;
  std::string json;
  uint64_t seed = 1;
  FleetSettings fleet;
};

struct Row {
  std::string name;
  int ticks = -1;  // until in balance; -1: never
  uint64_t moves = 0, bound = 0, too_soon = 0;
  double imbalance_before = 0, imbalance_after = 0;
  double p99_imbalance = 0;
  double moves_per_hour = 0;
  double plan_ms_p50 = 0, plan_ms_max = 0;
  double memory_growth = 0;
  bool good = false;
};

double ResidentMb() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double Quantile(std::span<const double> given, double q) {
  if (given.empty()) return 0;
  std::vector<double> values(given.begin(), given.end());
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

void Fill(Row& row, const Account& before, const Account& after) {
  row.moves = after.moves - before.moves;
  row.bound = after.bound - before.bound;
  row.too_soon = after.moved_too_soon - before.moved_too_soon;
  const auto fresh = std::span(after.plan_ms).subspan(before.plan_ms.size());
  row.plan_ms_p50 = Quantile(fresh, 0.5);
  row.plan_ms_max = Quantile(fresh, 1);
}

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : options_(options), fleet_(options.fleet, options.seed), agent_(fleet_, {}) {}

  // A change, and how long until the true loads are in balance, but for what is taken for noise.
  template <typename Change>
  Row Step(const std::string& name, bool of_backends, Change change) {
    change(fleet_);
    if (of_backends) agent_.Hurry();
    Row row = {.name = name, .imbalance_before = agent_.Imbalance()};
    const Account before = agent_.account();
    for (int tick = 1; tick <= 20; ++tick) {
      agent_.Tick();
      row.imbalance_after = agent_.Imbalance();
      const bool balanced = row.imbalance_after <= 1 + kTolerance + agent_.significant();
      if (balanced && row.ticks < 0) row.ticks = tick;
    }
    Fill(row, before, agent_.account());
    row.good = row.ticks >= 0 && row.ticks <= 3 && row.moves * 10 <= row.bound * 11 + 10 &&
               row.too_soon == 0 && row.plan_ms_max <= 200;
    return row;
  }

  Row Hour(const std::string& name, bool eventful) {
    Row row = {.name = name, .imbalance_before = agent_.Imbalance()};
    const Account before = agent_.account();
    const int ticks = options_.quick ? 120 : 720;
    double memory = 0;
    std::vector<double> imbalances;
    for (int tick = 0; tick < ticks; ++tick) {
      if (eventful) Happen(tick);
      agent_.Tick();
      imbalances.push_back(agent_.Imbalance());
      if (tick == ticks / 6) memory = ResidentMb();
    }
    Fill(row, before, agent_.account());
    row.memory_growth = ResidentMb() / memory - 1;
    row.imbalance_after = Quantile(imbalances, 0.5);
    row.p99_imbalance = Quantile(imbalances, 0.99);
    row.moves_per_hour = static_cast<double>(row.moves) * 720 / ticks;
    const double of_all = row.moves_per_hour / options_.fleet.connections;
    // Noise alone may move one connection in ten thousand an hour; changing loads are another matter.
    row.good = row.too_soon == 0 && row.memory_growth <= 0.05 && row.plan_ms_max <= 200 &&
               (eventful || of_all <= 1e-4);
    return row;
  }

 private:
  void Happen(int tick) {
    fleet_.Drift(1e-5);
    if (tick % 60 == 30) {
      failed_ = static_cast<uint32_t>(fleet_.random() % fleet_.serving.size());
      fleet_.Fail(failed_);
      agent_.Hurry();
    }
    if (tick % 60 == 50) {
      fleet_.serving[failed_] = true;
      agent_.Hurry();
    }
  }

  const Options& options_;
  Fleet fleet_;
  Agent agent_;
  uint32_t failed_ = 0;
};

std::vector<Row> RunAll(const Options& options) {
  std::vector<Row> rows;
  const auto done = [&](Row row) {
    std::fprintf(stderr, "%s: done\n", row.name.c_str());
    rows.push_back(std::move(row));
  };
  {
    Simulation simulation(options);
    done(simulation.Step("first balance", true, [](Fleet&) {}));
    done(simulation.Step("one in a hundred three times as busy", false,
                         [](Fleet& fleet) { fleet.Step(0.01, 3); }));
    done(simulation.Step("one backend in twenty fails", true, [](Fleet& fleet) {
      for (uint32_t i = 0; i < fleet.serving.size(); i += 20) fleet.Fail(i);
    }));
    done(simulation.Step("they come back", true,
                         [](Fleet& fleet) { fleet.serving.assign(fleet.serving.size(), true); }));
    done(simulation.Hour("an hour of noise", false));
  }
  Options rough = options;
  rough.fleet.refusing = 0.02;
  rough.fleet.stray = 0.03;
  Simulation simulation(rough);
  done(simulation.Hour("an hour of drift, bursts, failures, refusals", true));
  return rows;
}

std::string Table(const std::vector<Row>& rows) {
  std::string text = absl::StrFormat("%-45s %5s %15s %7s %7s %6s %8s %6s %9s %7s  %s\n", "case",
                                     "ticks", "imbalance", "p99", "moves", "bound", "moves/h",
                                     "soon", "plan ms", "memory", "bars");
  for (const Row& r : rows) {
    absl::StrAppendFormat(
        &text, "%-45s %5d %6.2f -> %5.3f %7.3f %7d %6d %8.0f %6d %4.0f/%4.0f %6.1f%%  %s\n", r.name,
        r.ticks, r.imbalance_before, r.imbalance_after, r.p99_imbalance, r.moves, r.bound,
        r.moves_per_hour, r.too_soon, r.plan_ms_p50, r.plan_ms_max, 100 * r.memory_growth,
        r.good ? "met" : "MISSED");
  }
  return text;
}

std::string Json(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& r : rows) {
    lines.push_back(absl::StrFormat(
        R"({"name": "%s", "ticks": %d, "imbalance_before": %.4f, "imbalance_after": %.4f, )"
        R"("p99_imbalance": %.4f, "moves": %d, "lower_bound": %d, "moves_per_hour": %.0f, )"
        R"("moved_too_soon": %d, "plan_ms_p50": %.2f, "plan_ms_max": %.2f, )"
        R"("memory_growth": %.4f, "met": %s})",
        r.name, r.ticks, r.imbalance_before, r.imbalance_after, r.p99_imbalance, r.moves, r.bound,
        r.moves_per_hour, r.too_soon, r.plan_ms_p50, r.plan_ms_max, r.memory_growth,
        r.good ? "true" : "false"));
  }
  return absl::StrCat("{\"rows\": [\n", absl::StrJoin(lines, ",\n"), "\n]}\n");
}

}  // namespace

int Run(int argc, char** argv) {
  Options options;
  CLI::App app{"The rebalancing policy in virtual time: backends and connections by the thousand."};
  app.add_flag("--quick", options.quick,
               "20 backends, 20,000 connections, ten minutes for an hour");
  app.add_option("--json", options.json, "write the rows to this file");
  app.add_option("--seed", options.seed, "of all that is random")->capture_default_str();
  app.add_option("--zipf", options.fleet.zipf, "exponent of the loads")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (options.quick) {
    options.fleet.backends = 20;
    options.fleet.connections = 20'000;
  }
  std::printf("seed %llu, %u backends, %u connections, Zipf(%.2f), a tick is 5 s\n",
              static_cast<unsigned long long>(options.seed), options.fleet.backends,
              options.fleet.connections, options.fleet.zipf);
  const std::vector<Row> rows = RunAll(options);
  std::fputs(Table(rows).c_str(), stdout);
  if (!options.json.empty()) std::ofstream(options.json) << Json(rows);
  return std::ranges::all_of(rows, &Row::good) ? 0 : 1;
}

}  // namespace unpin::sim

int main(int argc, char** argv) { return unpin::sim::Run(argc, argv); }
