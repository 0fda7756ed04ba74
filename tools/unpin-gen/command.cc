// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/command.h"

#include "absl/time/time.h"

namespace unpin::gen {
namespace {

Duration ParseOrThrow(const std::string& name, const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration > absl::Hours(24 * 365)) {
    throw CLI::ValidationError(name, "'" + text + "' is not a duration such as 250ms, 5s or 2m");
  }
  return absl::ToChronoNanoseconds(duration);
}

}  // namespace

CLI::Option* AddDuration(CLI::App* command, const std::string& name, Duration& value,
                         const std::string& help) {
  return command
      ->add_option_function<std::string>(
          name, [&value, name](const std::string& text) { value = ParseOrThrow(name, text); }, help)
      ->type_name("DURATION")
      ->default_str(absl::FormatDuration(absl::FromChrono(value)));
}

CLI::Option* AddDuration(CLI::App* command, const std::string& name, std::optional<Duration>& value,
                         const std::string& help) {
  return command
      ->add_option_function<std::string>(
          name, [&value, name](const std::string& text) { value = ParseOrThrow(name, text); }, help)
      ->type_name("DURATION");
}

}  // namespace unpin::gen
