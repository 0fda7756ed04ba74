// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/channel.h"

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace unpin::gen {
namespace {

constexpr char kRetryPolicy[] = R"({"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.2s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

constexpr char kRoundRobin[] = R"("loadBalancingConfig": [{"round_robin": {}}])";

// Empty if gRPC's defaults are meant.
std::string ServiceConfig(const ChannelOptions& options) {
  if (!options.round_robin) return options.retry ? kRetryPolicy : "";
  const std::string retry(kRetryPolicy);
  return options.retry ? absl::StrCat("{", kRoundRobin, ", ", retry.substr(1)) : absl::StrCat("{", kRoundRobin, "}");
}

absl::string_view StateName(grpc_connectivity_state state) {
  switch (state) {
    case GRPC_CHANNEL_IDLE:
      return "idle";
    case GRPC_CHANNEL_CONNECTING:
      return "still connecting: does anything answer there?";
    case GRPC_CHANNEL_READY:
      return "ready";
    case GRPC_CHANNEL_TRANSIENT_FAILURE:
      return "the attempt failed: is anything listening, and TLS on both ends or on neither?";
    case GRPC_CHANNEL_SHUTDOWN:
      return "shut down";
  }
  return "unknown";
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ChannelOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  if (!options.tls_ca.empty()) {
    absl::StatusOr<std::string> roots = ReadFile(options.tls_ca);
    if (!roots.ok()) return roots.status();
    tls.pem_root_certs = *roots;
  }
  return grpc::SslCredentials(tls);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();

  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  if (!options.tls_name.empty()) arguments.SetSslTargetNameOverride(options.tls_name);
  if (const std::string config = ServiceConfig(options); !config.empty()) arguments.SetServiceConfigJSON(config);
  const std::string target = options.round_robin ? absl::StrCat("ipv4:", options.target) : options.target;
  return grpc::CreateCustomChannel(target, *credentials, arguments);
}

absl::Status AwaitConnected(grpc::Channel& channel, const std::string& target, Duration timeout) {
  if (channel.WaitForConnected(std::chrono::system_clock::now() + timeout)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("connect to ", target, ": no connection within ",
                                             absl::FormatDuration(absl::FromChrono(timeout)), ", ",
                                             StateName(channel.GetState(false))));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!(text << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("read ", path, ": not a readable, non-empty file"));
  }
  return text.str();
}

}  // namespace unpin::gen
