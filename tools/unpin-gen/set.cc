// SPDX-License-Identifier: Apache-2.0
// `unpin-gen set`: changes how a running `unpin-gen serve` behaves.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/unpin/gen/v1/echo.grpc.pb.h"
#include "tools/unpin-gen/channel.h"
#include "tools/unpin-gen/command.h"

namespace unpin::gen {
namespace {

constexpr char kManual[] =
    "Changes how a running `unpin-gen serve` behaves, and prints what it now is. Without a change "
    "it only\n"
    "prints. A new service time holds for requests not yet begun. Address the backend itself: "
    "through a\n"
    "balancer you change whichever it picks.";

constexpr Duration kTimeout = std::chrono::seconds(5);

struct SetOptions {
  ChannelOptions channel;
  std::optional<Duration> service_time;
  std::optional<uint32_t> workers;
  std::optional<std::string> serving;
};

v1::SetBehaviourRequest MakeRequest(const SetOptions& options) {
  v1::SetBehaviourRequest request;
  if (options.service_time) {
    request.mutable_service_time()->set_seconds(options.service_time->count() / 1'000'000'000);
    request.mutable_service_time()->set_nanos(options.service_time->count() % 1'000'000'000);
  }
  if (options.workers) request.set_workers(*options.workers);
  if (options.serving) request.set_serving(*options.serving == "yes");
  return request;
}

absl::Status Set(const SetOptions& options) {
  auto channel = MakeChannel(options.channel);
  if (!channel.ok()) return channel.status();
  absl::Status connected = AwaitConnected(**channel, options.channel.target, kTimeout);
  if (!connected.ok()) return connected;

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  v1::Behaviour now;
  const grpc::Status status =
      v1::Control::NewStub(*channel)->SetBehaviour(&context, MakeRequest(options), &now);
  if (!status.ok()) {
    return absl::Status(
        static_cast<absl::StatusCode>(status.error_code()),
        absl::StrCat("set behaviour of ", options.channel.target, ": ", status.error_message()));
  }
  const absl::Duration service_time =
      absl::Seconds(now.service_time().seconds()) + absl::Nanoseconds(now.service_time().nanos());
  std::printf("%s: %u workers, service time %s, %s, %u unanswered\n", now.backend().c_str(),
              now.workers(), absl::FormatDuration(service_time).c_str(),
              now.serving() ? "serving" : "not serving", now.unanswered());
  return absl::OkStatus();
}

}  // namespace

void AddSetCommand(CLI::App& app, absl::Status& result) {
  CLI::App* set = app.add_subcommand("set", kManual);
  const auto options = std::make_shared<SetOptions>();
  set->add_option("--target", options->channel.target, "ADDR:PORT of the backend")->required();
  AddDuration(set, "--service-time", options->service_time, "a worker's time for a request");
  set->add_option("--workers", options->workers, "requests worked on at a time");
  set->add_option("--serving", options->serving, "what grpc.health.v1 says: yes or no")
      ->check(CLI::IsMember({"yes", "no"}));
  CLI::Option* tls = set->add_flag("--tls", options->channel.tls, "the backend speaks TLS");
  set->add_option("--tls-ca", options->channel.tls_ca, "PEM file of its authority")->needs(tls);
  set->add_option("--tls-name", options->channel.tls_name, "the name in its certificate")
      ->needs(tls);
  set->callback([options, &result] { result = Set(*options); });
}

}  // namespace unpin::gen
