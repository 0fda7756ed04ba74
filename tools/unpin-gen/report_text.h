// SPDX-License-Identifier: Apache-2.0
// A load report as text: a summary to read, CSV and JSON for programs, and the lines of the live view.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/unpin/gen/v1/report.pb.h"
#include "tools/unpin-gen/recorder.h"

namespace unpin::gen {

std::string FormatSummary(const v1::LoadReport& report);

// One row a bucket: its totals, then a column a backend.
std::string FormatCsv(const v1::LoadReport& report);

// Protobuf JSON with proto field names, defaults printed.
absl::StatusOr<std::string> FormatJson(const v1::LoadReport& report);

// What happened between two moments of a load, `elapsed` after it began. `expected_backends` as in Recorder.
std::string FormatLive(Duration elapsed, const Progress& before, const Progress& now,
                       size_t expected_backends);

// Overwrites `path`.
absl::Status WriteFile(const std::string& path, const std::string& text);

}  // namespace unpin::gen
