// SPDX-License-Identifier: Apache-2.0
// Rows in, text out.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace unpin {

using Row = std::vector<std::string>;

// Left-aligns every column, two spaces apart; no trailing blanks, no colour.
inline std::string FormatTable(const Row& header, const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const std::string& title : header) widths.push_back(title.size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto append = [&](const Row& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(i + 1 == row.size() ? 0 : widths[i] - row[i].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  append(header);
  for (const Row& row : rows) append(row);
  return text;
}

}  // namespace unpin
