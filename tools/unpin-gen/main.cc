// SPDX-License-Identifier: Apache-2.0
// unpin-gen: traffic for load balancers, and backends to receive it.
#include <cstdio>

#include "tools/unpin-gen/command.h"

int main(int argc, char** argv) {
  CLI::App app(
      "unpin-gen: traffic for load balancers, and backends to receive it. Works with any "
      "balancer.\n"
      "Each subcommand's --help is its manual. Exit status: 0 done, 1 failed, 2 wrong usage.",
      "unpin-gen");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  absl::Status result;
  unpin::gen::AddServeCommand(app, result);
  unpin::gen::AddGrpcCommand(app, result);
  unpin::gen::AddSetCommand(app, result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "unpin-gen: %s; see --help\n", error.what());
    return 2;
  }
  if (result.ok()) return 0;
  std::fprintf(stderr, "unpin-gen: %s\n", std::string(result.message()).c_str());
  return absl::IsInvalidArgument(result) ? 2 : 1;
}
