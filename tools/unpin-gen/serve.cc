// SPDX-License-Identifier: Apache-2.0
// `unpin-gen serve`: a gRPC backend of known capacity.
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/unpin-gen/backend.h"
#include "tools/unpin-gen/command.h"
#include "tools/unpin-gen/signals.h"

namespace unpin::gen {
namespace {

constexpr char kManual[] =
    "A gRPC backend of known capacity: WORKERS requests at a time, each for SERVICE-TIME, the "
    "others wait\n"
    "in line. It speaks unpin.gen.v1.Echo (proto/unpin/gen/v1/echo.proto), grpc.health.v1 and, "
    "with --orca,\n"
    "xds.service.orca.v3.OpenRcaService. It prints a line with `ready on PORT` when it serves. "
    "SIGTERM\n"
    "drains: NOT_SERVING, GOAWAY, what is in flight is answered, and it exits; a second SIGTERM "
    "exits at once.\n"
    "`unpin-gen set` slows it down, speeds it up or changes its health while it runs.";

struct ServeOptions {
  BackendOptions backend;
  Duration grace = std::chrono::seconds(10);
};

absl::Status Serve(const ServeOptions& options) {
  HoldStopSignals();
  absl::StatusOr<std::unique_ptr<Backend>> backend = Backend::Start(options.backend);
  if (!backend.ok()) return backend.status();
  const char* name = options.backend.name.c_str();
  std::printf("%s ready on %d\n", name, (*backend)->port());
  std::fflush(stdout);

  AwaitStopSignal(TimePoint::max());
  ReleaseStopSignals();
  std::printf("%s draining\n", name);
  std::fflush(stdout);
  (*backend)->Drain(options.grace);
  std::printf("%s answered %llu\n", name, static_cast<unsigned long long>((*backend)->answered()));
  return absl::OkStatus();
}

}  // namespace

void AddServeCommand(CLI::App& app, absl::Status& result) {
  CLI::App* serve = app.add_subcommand("serve", kManual);
  const auto options = std::make_shared<ServeOptions>();
  BackendOptions& backend = options->backend;
  serve->add_option("--listen", backend.listen, "ADDR:PORT; port 0 takes a free one")->required();
  serve->add_option("--name", backend.name, "what replies call this backend")->required();
  serve->add_option("--workers", backend.workers, "requests worked on at a time")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  AddDuration(serve, "--service-time", backend.service_time,
              "a worker's time for a request; 0 answers at once, without a queue");
  AddDuration(serve, "--max-connection-age", backend.max_connection_age,
              "gRPC's own: GOAWAY to connections of this age, give or take 10 %");
  AddDuration(serve, "--max-connection-age-grace", backend.max_connection_age_grace,
              "how long their RPCs may still take");
  CLI::Option* certificate =
      serve->add_option("--tls-cert", backend.tls_certificate, "PEM file; serves TLS");
  CLI::Option* key = serve->add_option("--tls-key", backend.tls_key, "PEM file");
  certificate->needs(key);
  key->needs(certificate);
  serve->add_flag("--orca", backend.orca,
                  "report out of band the share of worker time in use, and requests per second");
  AddDuration(serve, "--grace", options->grace, "on SIGTERM, cancel what is in flight after this");
  serve->callback([options, &result] { result = Serve(*options); });
}

}  // namespace unpin::gen
