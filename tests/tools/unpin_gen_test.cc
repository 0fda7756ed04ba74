// SPDX-License-Identifier: Apache-2.0
// unpin-gen as its users run it: real processes, real gRPC, over the loopback interface.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/unpin/gen/v1/report.pb.h"
#include "tests/tools/process.h"

namespace unpin::gen {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Pair;

using Words = std::vector<std::string>;

Words Generator(const Words& arguments) {
  Words command = {UNPIN_GEN};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// A server that serves.
class Server : public Process {
 public:
  explicit Server(Words options = {}, const std::string& name = "b1")
      : Process(Generator(Join({"serve", "--listen", "127.0.0.1:0", "--name", name}, options))) {
    const std::string line = Line();
    const std::string prefix = name + " ready on ";
    EXPECT_TRUE(absl::StartsWith(line, prefix)) << line;
    if (line.size() > prefix.size()) port_ = line.substr(prefix.size());
  }

  const std::string& port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + port_; }

  static Words Join(Words first, const Words& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

 private:
  std::string port_;
};

class Client : public Process {
 public:
  Client(const Server& server, const Words& options)
      : Process(Generator(
            Server::Join({"grpc", "--target", server.address(), "--json", "-"}, options))) {}

  v1::LoadReport Report(int expected_exit = 0) {
    const std::string json = Rest();
    EXPECT_EQ(Wait(), expected_exit) << json;
    v1::LoadReport report;
    // Around the object: lines of the live view, and the message of an expected failure.
    const size_t begin = json.find('{');
    const std::string object =
        begin == std::string::npos ? json : json.substr(begin, json.rfind('}') + 1 - begin);
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(object, &report).ok()) << json;
    return report;
  }
};

v1::LoadReport RunLoad(const Server& server, const Words& options) {
  return Client(server, options).Report();
}

std::string RunText(const Words& arguments, int expected_exit) {
  Process process(Generator(arguments));
  const std::string text = process.Rest();
  EXPECT_EQ(process.Wait(), expected_exit) << text;
  return text;
}

// Established TCP connections in `path` whose peer is `port`.
int CountConnections(const char* path, const std::string& port) {
  std::ifstream table(path);
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::string remote = absl::StrCat(":", absl::Hex(std::stoi(port), absl::kZeroPad4));
    count += fields.size() > 3 && fields[3] == "01" && absl::EndsWithIgnoreCase(fields[2], remote);
  }
  return count;
}

// gRPC's sockets are IPv6 ones, for IPv4 addresses too.
int ConnectionsTo(const std::string& port) {
  return CountConnections("/proc/net/tcp", port) + CountConnections("/proc/net/tcp6", port);
}

TEST(UnpinGen, ReportsEveryRequestOfAUniformSchedule) {
  Server server({"--workers", "8", "--service-time", "5ms"});
  const v1::LoadReport report =
      RunLoad(server, {"--connections", "4", "--rps", "200", "--arrivals", "uniform", "--duration",
                       "1s", "--bucket", "250ms"});
  EXPECT_EQ(report.totals().sent(), 200u);
  EXPECT_EQ(report.totals().succeeded(), 200u);
  EXPECT_EQ(report.totals().reconnects(), 0u);
  EXPECT_GE(report.latency().min_ms(), 5);
  ASSERT_EQ(report.backends_size(), 1);
  EXPECT_EQ(report.backends(0).name(), "b1");
  ASSERT_EQ(report.series_size(), 4);
  for (const v1::Bucket& bucket : report.series()) EXPECT_EQ(bucket.sent(), 50u);
  ASSERT_EQ(report.connections_size(), 4);
  for (const v1::ConnectionReport& connection : report.connections()) {
    EXPECT_THAT(connection.backends(), ElementsAre(Pair("b1", 50)));
  }
}

TEST(UnpinGen, EveryConnectionIsATcpConnectionOfItsOwn) {
  Server server;
  Client client(server, {"--connections", "7", "--settle", "20s"});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (ConnectionsTo(server.port()) < 7 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(ConnectionsTo(server.port()), 7);
  client.Signal(SIGTERM);
  EXPECT_THAT(client.Rest(), HasSubstr("stopped before the load began"));
  EXPECT_EQ(client.Wait(), 1);
}

TEST(UnpinGen, OverloadQueuesAndLatencyCountsFromTheSchedule) {
  Server server({"--workers", "1", "--service-time", "10ms"});
  // Twice what one worker can do for half a second: the last answer comes half a second late.
  const v1::LoadReport report = RunLoad(server, {"--rps", "200", "--arrivals", "uniform",
                                                 "--duration", "500ms", "--connections", "2"});
  EXPECT_EQ(report.totals().succeeded(), 100u);
  EXPECT_THAT(report.latency().worst_ms(), AllOf(Ge(490), Le(5000)));
  EXPECT_THAT(report.latency().mean_ms(), AllOf(Ge(245), Le(5000)));
}

TEST(UnpinGen, ClosedLoopKeepsItsStreamsOpenAndNoMore) {
  Server server({"--workers", "100", "--service-time", "50ms"});
  const v1::LoadReport report = RunLoad(
      server, {"--closed-loop", "--streams", "4", "--connections", "2", "--duration", "1s"});
  // 8 at a time, each 50 ms or more, within the second and the tail; one at a time would be 21.
  EXPECT_THAT(report.totals().succeeded(), AllOf(Ge(40u), Le(168u)));
  EXPECT_EQ(report.totals().succeeded(), report.totals().sent());
}

TEST(UnpinGen, StreamsDeliverEveryMessageAndTakeTheirIntervals) {
  Server server;
  const v1::LoadReport report =
      RunLoad(server, {"--pattern", "server-streaming", "--messages", "5", "--message-interval",
                       "20ms", "--response-bytes", "100000", "--requests", "20", "--rps", "100"});
  EXPECT_EQ(report.totals().succeeded(), 20u);
  EXPECT_EQ(report.totals().failed(), 0u);
  EXPECT_GE(report.latency().min_ms(), 80);
}

TEST(UnpinGen, MaxConnectionAgeShowsAsReconnectsWithoutFailures) {
  Server server({"--max-connection-age", "500ms"});
  const v1::LoadReport report =
      RunLoad(server, {"--connections", "2", "--rps", "100", "--duration", "2s", "--retry"});
  EXPECT_EQ(report.totals().failed(), 0u);
  for (const v1::ConnectionReport& connection : report.connections()) {
    EXPECT_GE(connection.reconnects(), 2u);
  }
}

TEST(UnpinGen, SigtermDrainsWhatIsInFlight) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  Server server({"--workers", "10", "--service-time", "2s"});
  Client client(server,
                {"--connections", "1", "--closed-loop", "--streams", "10", "--requests", "10"});
  while (!absl::StrContains(RunText({"set", "--target", server.address()}, 0), " 10 unanswered")) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  server.Signal(SIGTERM);
  const v1::LoadReport report = client.Report();
  EXPECT_EQ(report.totals().succeeded(), 10u);
  EXPECT_THAT(server.Rest(), HasSubstr("b1 answered 10"));
  EXPECT_EQ(server.Wait(), 0);
}

TEST(UnpinGen, AKilledServerShowsAsFailuresWithTheirTimes) {
  Server server;
  Client client(server, {"--connections", "3", "--rps", "300", "--duration", "2s", "--live"});
  EXPECT_THAT(client.Line(), HasSubstr(" s  sent "));
  server.Signal(SIGKILL);
  const v1::LoadReport report = client.Report();
  EXPECT_GT(report.totals().succeeded(), 0u);
  EXPECT_THAT(report.failures().by_code(),
              ElementsAre(Pair("UNAVAILABLE", report.totals().failed())));
  EXPECT_EQ(report.totals().succeeded() + report.totals().failed(), report.totals().sent());
  ASSERT_GT(report.failures().events_size(), 0);
  EXPECT_GT(report.failures().first_scheduled_s(), 0.5);
  EXPECT_GT(report.failures().last_ended_s(), report.failures().first_scheduled_s());
}

TEST(UnpinGen, DeadlinesAreKeptAndALoadWithoutAnySuccessFails) {
  Server server({"--workers", "1", "--service-time", "30s", "--grace", "0"});
  Client client(server, {"--deadline", "100ms", "--requests", "5", "--rps", "100"});
  const v1::LoadReport report = client.Report(1);
  EXPECT_THAT(report.failures().by_code(), ElementsAre(Pair("DEADLINE_EXCEEDED", 5)));
  // What the worker still holds does not keep a server whose grace is over.
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(UnpinGen, BehaviourChangesWhileItRuns) {
  Server server({"--service-time", "1ms"});
  EXPECT_EQ(RunText({"set", "--target", server.address()}, 0),
            "b1: 4 workers, service time 1ms, serving, 0 unanswered\n");
  EXPECT_EQ(RunText({"set", "--target", server.address(), "--service-time", "200ms", "--workers",
                     "20", "--serving", "no"},
                    0),
            "b1: 20 workers, service time 200ms, not serving, 0 unanswered\n");
  EXPECT_GE(RunLoad(server, {"--requests", "5"}).latency().min_ms(), 200);
  EXPECT_THAT(RunText({"set", "--target", server.address(), "--workers", "0"}, 2),
              HasSubstr("workers 0: not in 1.."));
}

TEST(UnpinGen, SpeaksTls) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("unpin-gen-test-", getpid());
  std::filesystem::create_directory(folder);
  const std::string key = folder / "key.pem", certificate = folder / "cert.pem";
  Process openssl({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                   "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                   "-days", "2", "-subj", "/CN=b1.test", "-addext", "subjectAltName=DNS:b1.test"});
  const std::string said = openssl.Rest();
  ASSERT_EQ(openssl.Wait(), 0) << said;

  Server server({"--tls-cert", certificate, "--tls-key", key});
  EXPECT_EQ(RunLoad(server,
                    {"--tls", "--tls-ca", certificate, "--tls-name", "b1.test", "--requests", "9"})
                .totals()
                .succeeded(),
            9u);
  EXPECT_THAT(RunText({"grpc", "--target", server.address(), "--connect-timeout", "500ms"}, 1),
              HasSubstr("TLS on both ends or on neither"));
  std::filesystem::remove_all(folder);
}

TEST(UnpinGen, RefusalsSayWhatToDo) {
  Server server;
  EXPECT_THAT(RunText({"serve", "--listen", server.address(), "--name", "b2"}, 1),
              HasSubstr("is the port taken"));
  EXPECT_THAT(RunText({"serve", "--listen", "127.0.0.1:0", "--name", "b2", "--tls-cert", "x"}, 2),
              HasSubstr("--tls-key"));
  EXPECT_THAT(RunText({"grpc", "--target", "x", "--deadline", "5"}, 2),
              HasSubstr("250ms, 5s or 2m"));
  EXPECT_THAT(RunText({"grpc", "--target", "x", "--closed-loop", "--rps", "5"}, 2),
              HasSubstr("--closed-loop"));
  EXPECT_THAT(RunText({"grpc", "--target", "x", "--pattern", "bidi"}, 2),
              HasSubstr("'bidi' is not one of server-streaming|unary"));
  EXPECT_THAT(RunText({}, 2), HasSubstr("subcommand"));
}

}  // namespace
}  // namespace unpin::gen
