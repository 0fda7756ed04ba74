// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/log.h"

#include <map>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace unpin {

absl::Status SetUpLog(absl::string_view level) {
  static const std::map<std::string, spdlog::level::level_enum, std::less<>> kLevels = {
      {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug},
      {"info", spdlog::level::info},   {"warn", spdlog::level::warn},
      {"error", spdlog::level::err},   {"off", spdlog::level::off}};
  const auto found = kLevels.find(std::string(level));
  if (found == kLevels.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "log level \"", level, "\" is not one of trace, debug, info, warn, error, off"));
  }
  auto logger =
      std::make_shared<spdlog::logger>("unpind", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->set_level(found->second);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace unpin
