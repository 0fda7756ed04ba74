// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/report_text.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace unpin::gen {
namespace {

std::string FailureLines(const v1::LoadReport& report) {
  if (report.totals().failed() == 0) return "";
  const v1::Failures& failures = report.failures();
  std::string text = "failures   ";
  for (const auto& [code, count] : failures.by_code())
    absl::StrAppend(&text, code, " ", count, "  ");
  absl::StrAppendFormat(&text, "scheduled %.2f–%.2f s, last ended %.2f s\n",
                        failures.first_scheduled_s(), failures.last_scheduled_s(),
                        failures.last_ended_s());
  if (failures.events_size() > 0) {
    absl::StrAppend(&text, "first      ", failures.events(0).message(), "\n");
  }
  return text;
}

uint32_t CountOf(const v1::Bucket& bucket, const std::string& backend) {
  const auto found = bucket.backends().find(backend);
  return found == bucket.backends().end() ? 0 : found->second;
}

}  // namespace

std::string FormatSummary(const v1::LoadReport& report) {
  const v1::Totals& totals = report.totals();
  const v1::Latency& latency = report.latency();
  std::string text = absl::StrFormat(
      "rpcs       %u sent, %u succeeded (%.1f/s), %u failed, %u reconnects\n"
      "latency    mean %.2f ms  p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  worst %.2f\n",
      totals.sent(), totals.succeeded(), totals.succeeded_per_s(), totals.failed(),
      totals.reconnects(), latency.mean_ms(), latency.p50_ms(), latency.p90_ms(), latency.p99_ms(),
      latency.p999_ms(), latency.worst_ms());
  absl::StrAppend(&text, "backends  ");
  for (const v1::BackendShare& backend : report.backends()) {
    absl::StrAppendFormat(&text, " %s %u (%.1f%%) ", backend.name(), backend.succeeded(),
                          100 * backend.share());
  }
  absl::StrAppendFormat(&text, " max/mean %.3f\n", report.max_over_mean());
  absl::StrAppend(&text, FailureLines(report));
  absl::StrAppendFormat(&text, "generator  at most %.2f ms late with a request\n",
                        report.worst_send_lag_ms());
  return text;
}

std::string FormatCsv(const v1::LoadReport& report) {
  std::string text = "begin_s,sent,succeeded,failed,mean_ms,worst_ms,max_over_mean";
  for (const v1::BackendShare& backend : report.backends())
    absl::StrAppend(&text, ",", backend.name());
  absl::StrAppend(&text, "\n");
  for (const v1::Bucket& bucket : report.series()) {
    absl::StrAppendFormat(&text, "%.3f,%u,%u,%u,%.3f,%.3f,%.3f", bucket.begin_s(), bucket.sent(),
                          bucket.succeeded(), bucket.failed(), bucket.mean_ms(), bucket.worst_ms(),
                          bucket.max_over_mean());
    for (const v1::BackendShare& backend : report.backends()) {
      absl::StrAppend(&text, ",", CountOf(bucket, backend.name()));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<std::string> FormatJson(const v1::LoadReport& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(report, &text, options);
  if (!status.ok())
    return absl::InternalError(absl::StrCat("print report as JSON: ", status.ToString()));
  return text;
}

std::string FormatLive(Duration elapsed, const Progress& before, const Progress& now,
                       size_t expected_backends) {
  const absl::flat_hash_map<std::string, uint32_t> earlier(before.backends.begin(),
                                                           before.backends.end());
  uint32_t sum = 0;
  uint32_t most = 0;
  std::vector<std::pair<std::string, uint32_t>> counts;
  for (const auto& [name, count] : now.backends) {
    const auto found = earlier.find(name);
    counts.emplace_back(name, count - (found == earlier.end() ? 0 : found->second));
    sum += counts.back().second;
    most = std::max(most, counts.back().second);
  }

  std::string text = absl::StrFormat("%6.1f s  sent %6u  answered %6u  failed %4u ",
                                     std::chrono::duration<double>(elapsed).count(),
                                     now.sent - before.sent, sum, now.failed - before.failed);
  for (const auto& [name, count] : counts) {
    absl::StrAppendFormat(&text, "  %s %5.1f%%", name, sum == 0 ? 0.0 : 100.0 * count / sum);
  }
  if (sum > 0) {
    const size_t backends = std::max(expected_backends, counts.size());
    absl::StrAppendFormat(&text, "  max/mean %.2f", static_cast<double>(most) * backends / sum);
  }
  return text;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("write ", path));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) return absl::ErrnoToStatus(write_error, absl::StrCat("write ", path));
  if (!closed) return absl::ErrnoToStatus(errno, absl::StrCat("write ", path));
  return absl::OkStatus();
}

}  // namespace unpin::gen
