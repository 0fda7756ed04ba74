// SPDX-License-Identifier: Apache-2.0
// Reads YAML field by field; the first error is kept, with file, line, column and field, and nothing is read after it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "userspace/base/clock.h"
#include "userspace/base/ip_address.h"

namespace unpin {

class YamlReader {
 public:
  explicit YamlReader(std::string file) : file_(std::move(file)) {}

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // The document, which is a map; or a null node with the complaint kept.
  YAML::Node Parse(const std::string& text);

  // True if `node` is a map that has no other keys than these.
  bool ExpectMap(const YAML::Node& node, const std::string& field,
                 std::initializer_list<absl::string_view> keys);

  // Calls visit(item, "field[i]") for every item; an absent node has none.
  void ForEach(const YAML::Node& list, const std::string& field,
               const std::function<void(const YAML::Node&, const std::string&)>& visit);

  // Each leaves `value` as it is if the node is absent. `required` makes absence an error at `parent`.
  void Read(const YAML::Node& node, const std::string& field, std::string& value);
  void Read(const YAML::Node& node, const std::string& field, bool& value);
  void Read(const YAML::Node& node, const std::string& field, Duration& value, Duration low = {});
  void Read(const YAML::Node& node, const std::string& field, IpAddress& value);
  void Read(const YAML::Node& node, const std::string& field, Endpoint& value);
  void Read(const YAML::Node& node, const std::string& field, uint32_t& value, uint32_t low,
            uint32_t high);
  bool Require(const YAML::Node& parent, const std::string& field, absl::string_view key);

  void Fail(const YAML::Node& node, const std::string& field, absl::string_view what);

 private:
  std::optional<std::string> Scalar(const YAML::Node& node, const std::string& field,
                                    absl::string_view wanted);

  std::string file_;
  absl::Status status_;
};

}  // namespace unpin
