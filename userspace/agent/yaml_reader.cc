// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/yaml_reader.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace unpin {

YAML::Node YamlReader::Parse(const std::string& text) {
  try {  // the library's way of reporting a syntax error
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    const YAML::Node first = documents.empty() ? YAML::Node() : documents.front();
    if (first.IsNull())
      Fail(first, "the file", "is empty");
    else if (!first.IsMap())
      Fail(first, "the file", "is not a map of fields");
    else if (documents.size() > 1)
      Fail(documents[1], "the file", "has more than one document");
    if (ok()) return first;
  } catch (const YAML::Exception& error) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(file_, ":", error.mark.line + 1, ":", error.mark.column + 1, ": ", error.msg));
  }
  return YAML::Node();
}

void YamlReader::Fail(const YAML::Node& node, const std::string& field, absl::string_view what) {
  if (!ok()) return;
  const YAML::Mark mark = node.IsDefined() ? node.Mark() : YAML::Mark::null_mark();
  const std::string place =
      mark.is_null() ? file_ : absl::StrCat(file_, ":", mark.line + 1, ":", mark.column + 1);
  status_ = absl::InvalidArgumentError(absl::StrCat(place, ": ", field, ": ", what));
}

bool YamlReader::ExpectMap(const YAML::Node& node, const std::string& field,
                           std::initializer_list<absl::string_view> keys) {
  if (!ok() || !node.IsDefined()) return false;
  if (!node.IsMap()) {
    Fail(node, field, "is not a map of fields");
    return false;
  }
  std::vector<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::ranges::find(keys, key) == keys.end()) {
      Fail(entry.first, absl::StrCat(field.empty() ? "" : field + ".", key),
           absl::StrCat("is not known here; known are ", absl::StrJoin(keys, ", ")));
    } else if (std::ranges::find(seen, key) != seen.end()) {
      Fail(entry.first, absl::StrCat(field.empty() ? "" : field + ".", key), "is given twice");
    }
    seen.push_back(key);
  }
  return ok();
}

void YamlReader::ForEach(const YAML::Node& list, const std::string& field,
                         const std::function<void(const YAML::Node&, const std::string&)>& visit) {
  if (!ok() || !list.IsDefined() || list.IsNull()) return;
  if (!list.IsSequence()) return Fail(list, field, "is not a list");
  for (size_t i = 0; i < list.size() && ok(); ++i) visit(list[i], absl::StrCat(field, "[", i, "]"));
}

std::optional<std::string> YamlReader::Scalar(const YAML::Node& node, const std::string& field,
                                              absl::string_view wanted) {
  if (!ok() || !node.IsDefined()) return std::nullopt;
  if (node.IsScalar()) return node.Scalar();
  Fail(node, field, absl::StrCat("is not ", wanted));
  return std::nullopt;
}

bool YamlReader::Require(const YAML::Node& parent, const std::string& field,
                         absl::string_view key) {
  if (!ok()) return false;
  if (parent[std::string(key)].IsDefined()) return true;
  Fail(parent, absl::StrCat(field, ".", key), "is missing");
  return false;
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, std::string& value) {
  if (auto text = Scalar(node, field, "a text")) value = *std::move(text);
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, bool& value) {
  const auto text = Scalar(node, field, "true or false");
  if (!text) return;
  if (*text == "true")
    value = true;
  else if (*text == "false")
    value = false;
  else
    Fail(node, field, absl::StrCat("\"", *text, "\" is not true or false"));
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, Duration& value,
                      Duration low) {
  const auto text = Scalar(node, field, "a duration");
  if (!text) return;
  absl::Duration duration;
  if (!absl::ParseDuration(*text, &duration) || duration < absl::ZeroDuration() ||
      duration > absl::Hours(24 * 365)) {
    return Fail(node, field,
                absl::StrCat("\"", *text, "\" is not a duration such as 20ms, 1s or 2h"));
  }
  if (duration < absl::FromChrono(low)) {
    return Fail(node, field,
                absl::StrCat("is shorter than ", absl::FormatDuration(absl::FromChrono(low))));
  }
  value = absl::ToChronoNanoseconds(duration);
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, IpAddress& value) {
  const auto text = Scalar(node, field, "an IPv4 address");
  if (!text) return;
  const absl::StatusOr<IpAddress> address = ParseIpAddress(*text);
  if (address.ok())
    value = *address;
  else
    Fail(node, field, address.status().message());
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, Endpoint& value) {
  const auto text = Scalar(node, field, "an address:port");
  if (!text) return;
  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(*text);
  if (endpoint.ok())
    value = *endpoint;
  else
    Fail(node, field, endpoint.status().message());
}

void YamlReader::Read(const YAML::Node& node, const std::string& field, uint32_t& value,
                      uint32_t low, uint32_t high) {
  const auto text = Scalar(node, field, "a number");
  if (!text) return;
  int64_t number = 0;
  if (!absl::SimpleAtoi(*text, &number) || number < low || number > high) {
    return Fail(node, field, absl::StrCat(*text, " is not in ", low, "..", high));
  }
  value = static_cast<uint32_t>(number);
}

}  // namespace unpin
