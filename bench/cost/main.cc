// SPDX-License-Identifier: Apache-2.0
// packet_cost: nanoseconds a packet, as a ratio to a program that only swaps the MACs.
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/cost/harness.h"

namespace unpin::bench {
namespace {

struct Options {
  bool quick = false;
  std::string json;
  std::string only;
  std::string commit = "unknown";
  int cpu = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - 1;
};

struct Result {
  std::string name;
  uint32_t flows = 0;
  double min = 0, median = 0, ratio = 0, floor = 0;
  std::optional<double> bar = {};
};

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

Result Summarise(const Row& row, uint32_t flows, const Measured& measured,
                 const std::vector<Result>& earlier) {
  Result result{.name = row.name, .flows = flows};
  result.min = std::ranges::min(measured.ns);
  result.median = Median(measured.ns);
  result.floor = std::ranges::min(measured.floor);
  result.ratio = result.min / result.floor;
  for (const Bar& bar : row.bars) {
    if (bar.flows != flows) continue;
    result.bar = bar.ratio;
    for (const Result& other : earlier) {
      if (other.name == bar.beyond && other.flows == flows) *result.bar += other.ratio;
    }
  }
  return result;
}

void Print(const Result& r) {
  std::string bar;
  if (r.bar) bar = absl::StrFormat("%8.2f  %s", *r.bar, r.ratio <= *r.bar ? "yes" : "NO");
  std::printf("%-40s %8u %9.1f %9.1f %8.2f %s\n", r.name.c_str(), r.flows, r.min, r.median, r.ratio,
              bar.c_str());
  std::fflush(stdout);
}

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

absl::Status WriteJson(const Options& options, const std::vector<Result>& results, double floor) {
  utsname system = {};
  uname(&system);
  std::vector<std::string> rows;
  for (const Result& r : results) {
    rows.push_back(absl::StrFormat(
        R"(  {"name": "%s", "flows": %u, "min_ns": %.2f, "median_ns": %.2f, "ratio": %.3f, "bar": %s})",
        r.name, r.flows, r.min, r.median, r.ratio,
        r.bar ? absl::StrFormat("%.3f", *r.bar) : "null"));
  }
  std::ofstream file(options.json);
  file << absl::StrFormat(
              "{\"floor_ns\": %.2f, \"kernel\": \"%s\", \"cpu\": \"%s\", \"commit\": \"%s\",\n",
              floor, system.release, CpuModel(), options.commit)
       << " \"command\": \"bench/packet_cost" << (options.quick ? " --quick" : "") << "\",\n"
       << " \"rows\": [\n"
       << absl::StrJoin(rows, ",\n") << "\n]}\n"
       << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("write ", options.json));
}

// And let nothing else run there: whoever takes turns with this thread takes its caches too.
absl::Status KeepCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  const sched_param priority = {.sched_priority = 1};
  if (sched_setaffinity(0, sizeof(set), &set) == 0 &&
      sched_setscheduler(0, SCHED_FIFO, &priority) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("keep CPU ", cpu));
}

absl::Status RunAll(const Options& options) {
  absl::Status status = KeepCpu(options.cpu);
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Harness>> harness = Harness::Make();
  if (!harness.ok()) return harness.status();
  const Effort effort = options.quick ? Effort{.rounds = 3, .packets = 20000} : Effort{};
  const std::vector<uint32_t> counts = options.quick
                                           ? std::vector<uint32_t>{1, 4096}
                                           : std::vector<uint32_t>{1, 4096, 65536, 524288};

  std::printf("%-40s %8s %9s %9s %8s %8s\n", "packet", "flows", "min ns", "median", "ratio", "bar");
  std::vector<Result> results;
  double floor = 0;
  for (const Row& row : Rows((*harness)->network())) {
    if (!absl::StrContains(row.name, options.only)) continue;
    for (const uint32_t flows : counts) {
      if (row.has_endless_flows && flows > 1) continue;
      const absl::StatusOr<Measured> measured = (*harness)->Measure(row, flows, effort);
      if (!measured.ok()) return measured.status();
      results.push_back(Summarise(row, flows, *measured, results));
      floor = floor == 0 ? results.back().floor : std::min(floor, results.back().floor);
      Print(results.back());
    }
  }
  std::printf("floor W: %.1f ns (each ratio is to the floor of its own rounds)\n", floor);
  return options.json.empty() ? absl::OkStatus() : WriteJson(options, results, floor);
}

}  // namespace
}  // namespace unpin::bench

int main(int argc, char** argv) {
  CLI::App app(
      "Nanoseconds a packet through the data plane (BPF_PROG_TEST_RUN), beside a program that only "
      "swaps the MACs and\n"
      "transmits, in the same run. min and median of all rounds, thread CPU time. Needs root.",
      "packet_cost");
  unpin::bench::Options options;
  app.add_flag("--quick", options.quick,
               "few rounds, 1 and 4,096 flows: is every row there, not how fast");
  app.add_option("--json", options.json, "FILE to write the rows to");
  app.add_option("--only", options.only, "rows whose name contains this");
  app.add_option("--cpu", options.cpu, "CPU to stay on")->capture_default_str();
  app.add_option("--commit", options.commit, "what to call the code measured");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = unpin::bench::RunAll(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "packet_cost: %s\n", std::string(status.message()).c_str());
  return 1;
}
