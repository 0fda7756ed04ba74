// SPDX-License-Identifier: Apache-2.0
// `unpin-gen grpc`: the command line of the gRPC load, its live view, and where its report goes.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/unpin-gen/command.h"
#include "tools/unpin-gen/load.h"
#include "tools/unpin-gen/report_text.h"
#include "tools/unpin-gen/signals.h"

namespace unpin::gen {
namespace {

constexpr char kManual[] =
    "Sends RPCs to servers of `unpin-gen serve`, directly or through any balancer, and reports "
    "latencies,\n"
    "every backend's share over time, and failures by code. Every connection is a channel of its "
    "own with a\n"
    "TCP connection of its own; all are opened first, in order (see --lazy). Open loop (the "
    "default)\n"
    "sends by a schedule whatever the answers, and counts latency from the scheduled time; closed "
    "loop keeps\n"
    "--streams RPCs open on each connection. RPCs that fail are part of the report, not an error; "
    "exit\n"
    "status 1 means that nothing was measured. ^C ends the load early and still reports.";

struct GrpcOptions {
  LoadOptions load;
  RateOptions rates;
  std::optional<uint32_t> shuffle_seed;
  bool lazy = false;
  Duration settle{0};
  Duration connect_timeout = std::chrono::seconds(10);
  std::optional<double> start_at;
  std::string json;
  std::string csv;
  bool live = false;
};

// A word for a value. CLI11's own transformer would talk of the values too.
template <typename Value>
CLI::Validator OneOf(const std::map<std::string, Value>& words) {
  std::string names;
  for (const auto& [word, value] : words) absl::StrAppend(&names, names.empty() ? "" : "|", word);
  const auto translate = [words, names](std::string& text) {
    const auto found = words.find(text);
    if (found == words.end()) return absl::StrCat("'", text, "' is not one of ", names);
    text = std::to_string(static_cast<int>(found->second));
    return std::string();
  };
  return CLI::Validator(translate, names);
}

double UnixNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

absl::StatusOr<std::vector<double>> ConnectionRates(const GrpcOptions& options) {
  if (options.load.closed_loop) {
    return std::vector<double>(options.rates.connections.value_or(8), 0.0);
  }
  absl::StatusOr<std::vector<double>> rates = PlanRates(options.rates);
  if (rates.ok() && options.shuffle_seed) Shuffle(*rates, *options.shuffle_seed);
  return rates;
}

// False if the user stopped it.
bool AwaitStart(const GrpcOptions& options) {
  TimePoint begin = Now() + options.settle;
  if (options.start_at) {
    const std::chrono::duration<double> left(*options.start_at - UnixNow());
    begin = std::max(begin, Now() + std::chrono::duration_cast<Duration>(left));
  }
  return !AwaitStopSignal(begin);
}

// Until all is sent or the user stops it.
void Watch(const Load& load, const GrpcOptions& options) {
  constexpr Duration kLook = std::chrono::milliseconds(50);
  constexpr Duration kLine = std::chrono::seconds(1);
  Progress before;
  Duration next_line = kLine;
  while (!load.all_sent() && !AwaitStopSignal(Now() + kLook)) {
    if (!options.live || load.Elapsed() < next_line) continue;
    Progress now = load.GetProgress();
    std::fprintf(stderr, "%s\n",
                 FormatLive(load.Elapsed(), before, now, options.load.expected_backends).c_str());
    before = std::move(now);
    next_line += kLine;
  }
}

absl::Status Publish(const GrpcOptions& options, const v1::LoadReport& report) {
  absl::Status status;
  const bool json_to_stdout = options.json == "-";
  if (!json_to_stdout) std::fputs(FormatSummary(report).c_str(), stdout);
  if (!options.json.empty()) {
    const absl::StatusOr<std::string> json = FormatJson(report);
    if (!json.ok()) return json.status();
    if (json_to_stdout) {
      std::fputs(json->c_str(), stdout);
    } else {
      status.Update(WriteFile(options.json, *json));
    }
  }
  if (!options.csv.empty()) status.Update(WriteFile(options.csv, FormatCsv(report)));
  if (status.ok() && report.totals().succeeded() == 0) {
    status = absl::UnavailableError(absl::StrCat("load on ", report.target(), ": none of ",
                                                 report.totals().sent(), " RPCs succeeded"));
  }
  return status;
}

absl::Status RunGrpc(GrpcOptions options) {
  absl::StatusOr<std::vector<double>> rates = ConnectionRates(options);
  if (!rates.ok()) return rates.status();
  options.load.rates = *std::move(rates);

  HoldStopSignals();
  Load load(options.load);
  absl::Status opened = load.Open(options.lazy, options.connect_timeout);
  if (!opened.ok()) return opened;
  if (!AwaitStart(options)) return absl::CancelledError("stopped before the load began");

  const double began = UnixNow();
  load.Start();
  Watch(load, options);
  ReleaseStopSignals();
  v1::LoadReport report = load.Finish();
  report.set_target(options.load.channel.target);
  report.set_arrivals(options.load.closed_loop                    ? "closed"
                      : options.load.spacing == Spacing::kPoisson ? "poisson"
                                                                  : "uniform");
  report.set_seed(options.load.seed);
  report.set_began_unix_s(began);
  return Publish(options, report);
}

void AddConnectionOptions(CLI::App* grpc, GrpcOptions& options) {
  ChannelOptions& channel = options.load.channel;
  grpc->add_option("--target", channel.target, "ADDR:PORT")->required();
  grpc->add_option("--connections", options.rates.connections, "channels (default 8)")
      ->check(CLI::Range(1, 100'000));
  grpc->add_flag("--lazy", options.lazy, "let the first request of a connection open it");
  AddDuration(grpc, "--settle", options.settle, "pause between the connections and the load");
  AddDuration(grpc, "--connect-timeout", options.connect_timeout, "for each connection");
  CLI::Option* tls = grpc->add_flag("--tls", channel.tls, "speak TLS");
  grpc->add_option("--tls-ca", channel.tls_ca, "PEM file of the authority; else the system's")
      ->needs(tls);
  grpc->add_option("--tls-name", channel.tls_name, "the name in the certificate")->needs(tls);
  grpc->add_flag("--round-robin", channel.round_robin,
                 "TARGET is IP:PORT,IP:PORT,...: every channel sends to all of them in turn (gRPC's round_robin)");
  grpc->add_flag("--retry", channel.retry,
                 "client retry policy: 4 attempts on UNAVAILABLE, back-off from 10 to 200 ms");
}

void AddRateOptions(CLI::App* grpc, GrpcOptions& options) {
  LoadOptions& load = options.load;
  CLI::Option* rps = grpc->add_option("--rps", options.rates.total_rps,
                                      "requests per second of all connections (default 100)");
  CLI::Option* rates = grpc->add_option("--rates", options.rates.shape,
                                        "equal, zipf:S (the i-th connection gets a share of "
                                        "1/i^S), or weights such as 5,3,1; without "
                                        "--rps weights are requests per second");
  CLI::Option* shuffle = grpc->add_option("--shuffle-seed", options.shuffle_seed,
                                          "shuffle which connection gets which rate");
  CLI::Option* arrivals =
      grpc->add_option("--arrivals", load.spacing, "poisson (default) or uniform")
          ->transform(
              OneOf<Spacing>({{"poisson", Spacing::kPoisson}, {"uniform", Spacing::kUniform}}));
  grpc->add_option("--seed", load.seed, "of the schedule")->capture_default_str();
  CLI::Option* open = grpc->add_flag_callback(
      "--open-loop", [] {}, "send by schedule; the default");
  CLI::Option* closed =
      grpc->add_flag("--closed-loop", load.closed_loop, "send when an answer has come");
  for (CLI::Option* option : {rps, rates, shuffle, arrivals, open}) closed->excludes(option);
  grpc->add_option("--streams", load.streams, "closed loop: RPCs kept open on each connection")
      ->needs(closed)
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

void AddRequestOptions(CLI::App* grpc, GrpcOptions& options) {
  LoadOptions& load = options.load;
  constexpr int kMaxBytes = 64 << 20;
  grpc->add_option("--pattern", load.pattern, "unary (default) or server-streaming")
      ->transform(OneOf<Pattern>(
          {{"unary", Pattern::kUnary}, {"server-streaming", Pattern::kServerStreaming}}));
  grpc->add_option("--request-bytes", load.request_bytes, "payload")
      ->check(CLI::Range(0, kMaxBytes))
      ->capture_default_str();
  grpc->add_option("--response-bytes", load.response_bytes, "payload; 0: the request's comes back")
      ->check(CLI::Range(0, kMaxBytes))
      ->capture_default_str();
  grpc->add_option("--messages", load.messages, "server-streaming: replies of a stream")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  AddDuration(grpc, "--message-interval", load.message_interval, "between them");
  AddDuration(grpc, "--deadline", load.deadline, "of an RPC");
  AddDuration(grpc, "--duration", load.duration, "of sending");
  grpc->add_option("--requests", load.max_requests, "stop after so many");
  grpc->add_option(
      "--start-at", options.start_at,
      "begin at this time (seconds since 1970, fractions allowed): to start several together");
  grpc->add_option("--threads", load.threads, "that handle answers")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void AddReportOptions(CLI::App* grpc, GrpcOptions& options) {
  grpc->add_option("--backends", options.load.expected_backends,
                   "how many there are: max/mean then counts those that never answer");
  AddDuration(grpc, "--bucket", options.load.bucket, "resolution of the shares over time");
  grpc->add_option("--json", options.json,
                   "write the report (proto/unpin/gen/v1/report.proto) here; - is stdout");
  grpc->add_option("--csv", options.csv, "write the shares over time here");
  options.live = isatty(STDERR_FILENO) == 1;
  grpc->add_flag("--live,!--no-live", options.live,
                 "a line a second on stderr (default: if that is a terminal)");
}

}  // namespace

void AddGrpcCommand(CLI::App& app, absl::Status& result) {
  CLI::App* grpc = app.add_subcommand("grpc", kManual);
  const auto options = std::make_shared<GrpcOptions>();
  AddConnectionOptions(grpc, *options);
  AddRateOptions(grpc, *options);
  AddRequestOptions(grpc, *options);
  AddReportOptions(grpc, *options);
  grpc->callback([options, &result] {
    const bool positive = options->load.bucket >= std::chrono::milliseconds(1) &&
                          options->load.deadline >= std::chrono::milliseconds(1);
    result = positive ? RunGrpc(*options)
                      : absl::InvalidArgumentError("--bucket and --deadline must be at least 1ms");
  });
}

}  // namespace unpin::gen
