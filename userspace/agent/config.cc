// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/config.h"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "userspace/agent/validate.h"
#include "userspace/agent/yaml_reader.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

constexpr Duration kShortestExpiry = std::chrono::seconds(1);
constexpr Duration kShortestTimeout = std::chrono::milliseconds(1);
constexpr Duration kShortestProbe = std::chrono::milliseconds(10);

void ReadPorts(YamlReader& in, const YAML::Node& node, SnatSettings& snat) {
  std::string text;
  in.Read(node, "snat.ports", text);
  if (!in.ok() || !node.IsDefined()) return;
  const std::pair<std::string, std::string> ends = absl::StrSplit(text, absl::MaxSplits('-', 1));
  uint32_t low = 0, high = 0;
  if (!absl::SimpleAtoi(ends.first, &low) || !absl::SimpleAtoi(ends.second, &high) || low == 0 ||
      high > 65535 || low > high) {
    return in.Fail(node, "snat.ports",
                   absl::StrCat("\"", text, "\" is not a range such as 1024-32767"));
  }
  snat.port_min = static_cast<uint16_t>(low);
  snat.port_max = static_cast<uint16_t>(high);
}

template <typename T>
void AddOnce(YamlReader& in, const YAML::Node& item, const std::string& field,
             const std::string& shown, const T& value, std::vector<T>& list) {
  if (std::ranges::find(list, value) == list.end())
    list.push_back(value);
  else
    in.Fail(item, field, absl::StrCat(shown, " is given twice"));
}

void ReadSnat(YamlReader& in, const YAML::Node& node, SnatSettings& snat) {
  if (!in.ExpectMap(node, "snat", {"addresses", "ports"})) return;
  in.ForEach(node["addresses"], "snat.addresses",
             [&](const YAML::Node& item, const std::string& field) {
               IpAddress address;
               in.Read(item, field, address);
               AddOnce(in, item, field, address.ToString(), address, snat.addresses);
             });
  if (snat.addresses.size() > 16) in.Fail(node["addresses"], "snat.addresses", "more than 16");
  ReadPorts(in, node["ports"], snat);
}

void ReadExpiry(YamlReader& in, const YAML::Node& node, ExpirySettings& expiry) {
  if (!in.ExpectMap(node, "expiry", {"established", "closing", "closed"})) return;
  in.Read(node["established"], "expiry.established", expiry.established, kShortestExpiry);
  in.Read(node["closing"], "expiry.closing", expiry.closing, kShortestExpiry);
  in.Read(node["closed"], "expiry.closed", expiry.closed, kShortestExpiry);
}

void ReadMoves(YamlReader& in, const YAML::Node& node, MoveSettings& moves) {
  if (!in.ExpectMap(node, "moves",
                    {"min_age", "trim_after", "arm_timeout", "resend_interval", "ack_timeout",
                     "reconnect_timeout"})) {
    return;
  }
  in.Read(node["min_age"], "moves.min_age", moves.min_age);
  in.Read(node["trim_after"], "moves.trim_after", moves.trim_after);
  in.Read(node["arm_timeout"], "moves.arm_timeout", moves.arm_timeout, kShortestTimeout);
  in.Read(node["resend_interval"], "moves.resend_interval", moves.resend_interval,
          kShortestTimeout);
  in.Read(node["ack_timeout"], "moves.ack_timeout", moves.ack_timeout, kShortestTimeout);
  in.Read(node["reconnect_timeout"], "moves.reconnect_timeout", moves.reconnect_timeout,
          kShortestTimeout);
}

void ReadBackend(YamlReader& in, const YAML::Node& node, const std::string& field,
                 ServiceWithBackends& service) {
  if (!in.ExpectMap(node, field, {"address", "weight", "draining"}) ||
      !in.Require(node, field, "address")) {
    return;
  }
  BackendSpec backend;
  in.Read(node["address"], field + ".address", backend.endpoint);
  in.Read(node["weight"], field + ".weight", backend.weight, 0, 65535);
  in.Read(node["draining"], field + ".draining", backend.draining);
  if (!service.backends.emplace(backend.endpoint, backend).second) {
    in.Fail(node["address"], field + ".address",
            absl::StrCat(backend.endpoint.ToString(), " is given twice"));
  }
}

template <typename T>
void ReadChoice(YamlReader& in, const YAML::Node& node, const std::string& field, T& value,
                const std::vector<std::pair<std::string, T>>& choices) {
  std::string text;
  in.Read(node, field, text);
  if (!in.ok() || !node.IsDefined()) return;
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) {
    if (text == name) {
      value = choice;
      return;
    }
    names.push_back(name);
  }
  in.Fail(node, field, absl::StrCat("\"", text, "\" is not one of ", absl::StrJoin(names, ", ")));
}

void ReadRebalance(YamlReader& in, const YAML::Node& node, const std::string& field,
                   RebalanceSettings& rebalance) {
  if (!in.ExpectMap(
          node, field,
          {"enabled", "signal", "tolerance_percent", "ticks", "moves_per_second", "cool_down"}))
    return;
  in.Read(node["enabled"], field + ".enabled", rebalance.enabled);
  ReadChoice<LoadSignal>(in, node["signal"], field + ".signal", rebalance.signal,
                         {{"requests", LoadSignal::kRequests},
                          {"inflight", LoadSignal::kInflight},
                          {"bytes", LoadSignal::kBytes}});
  uint32_t percent = static_cast<uint32_t>(std::lround(rebalance.tolerance * 100));
  in.Read(node["tolerance_percent"], field + ".tolerance_percent", percent, 1, 100);
  rebalance.tolerance = percent / 100.0;
  in.Read(node["ticks"], field + ".ticks", rebalance.ticks, 1, 1000);
  in.Read(node["moves_per_second"], field + ".moves_per_second", rebalance.moves_per_second, 1,
          100000);
  in.Read(node["cool_down"], field + ".cool_down", rebalance.cool_down);
}

void ReadOutlier(YamlReader& in, const YAML::Node& node, const std::string& field,
                 OutlierSettings& outlier) {
  if (!in.ExpectMap(node, field, {"latency_factor", "base", "longest", "max_percent"})) return;
  uint32_t factor = 0;
  in.Read(node["latency_factor"], field + ".latency_factor", factor, 0, 1000);
  outlier.latency_factor = factor;
  in.Read(node["base"], field + ".base", outlier.base, kShortestTimeout);
  in.Read(node["longest"], field + ".longest", outlier.longest, kShortestTimeout);
  in.Read(node["max_percent"], field + ".max_percent", outlier.max_percent, 0, 100);
}

void ReadHealth(YamlReader& in, const YAML::Node& node, const std::string& field,
                HealthSettings& health) {
  if (!in.ExpectMap(node, field,
                    {"kind", "interval", "timeout", "rise", "fall", "path", "service"}))
    return;
  using Kind = HealthSettings::Kind;
  ReadChoice<Kind>(
      in, node["kind"], field + ".kind", health.kind,
      {{"none", Kind::kNone}, {"tcp", Kind::kTcp}, {"grpc", Kind::kGrpc}, {"http", Kind::kHttp}});
  in.Read(node["interval"], field + ".interval", health.interval, kShortestProbe);
  in.Read(node["timeout"], field + ".timeout", health.timeout, kShortestProbe);
  in.Read(node["rise"], field + ".rise", health.rise, 1, 1000);
  in.Read(node["fall"], field + ".fall", health.fall, 1, 1000);
  in.Read(node["path"], field + ".path", health.path);
  in.Read(node["service"], field + ".service", health.service);
}

void ReadPolicy(YamlReader& in, const YAML::Node& node, const std::string& field,
                ServicePolicy& policy) {
  ReadChoice<bool>(in, node["steering"], field + ".steering", policy.source_hash,
                   {{"maglev", false}, {"source-hash", true}});
  in.Read(node["new_per_second"], field + ".new_per_second", policy.new_per_second, 0,
          1'000'000'000);
  in.Read(node["connections_per_backend"], field + ".connections_per_backend",
          policy.connections_per_backend, 0, 8 << 20);
  in.Read(node["max_connection_age"], field + ".max_connection_age", policy.max_connection_age);
  in.Read(node["drain_deadline"], field + ".drain_deadline", policy.drain_deadline);
  ReadRebalance(in, node["rebalance"], field + ".rebalance", policy.rebalance);
  ReadOutlier(in, node["outlier"], field + ".outlier", policy.outlier);
  ReadHealth(in, node["health"], field + ".health", policy.health);
  if (policy.source_hash && !node["rebalance"].IsDefined())
    policy.rebalance.enabled = false;  // it would break the affinity
}

void ReadService(YamlReader& in, const YAML::Node& node, const std::string& field,
                 Desired& desired) {
  if (!in.ExpectMap(node, field,
                    {"name", "vip", "snat", "backends", "steering", "new_per_second",
                     "connections_per_backend", "max_connection_age", "drain_deadline", "rebalance",
                     "outlier", "health"}) ||
      !in.Require(node, field, "name") || !in.Require(node, field, "vip")) {
    return;
  }
  ServiceWithBackends service;
  in.Read(node["name"], field + ".name", service.spec.name);
  if (in.ok() && !IsServiceName(service.spec.name)) {
    in.Fail(node["name"], field + ".name",
            absl::StrCat("\"", service.spec.name, "\" is not ", kServiceNames));
  }
  in.Read(node["vip"], field + ".vip", service.spec.vip);
  in.Read(node["snat"], field + ".snat", service.spec.snat);
  ReadPolicy(in, node, field, service.spec.policy);
  in.ForEach(
      node["backends"], field + ".backends",
      [&](const YAML::Node& item, const std::string& at) { ReadBackend(in, item, at, service); });
  const std::string name = service.spec.name;
  if (in.ok() && !desired.emplace(name, std::move(service)).second) {
    in.Fail(node["name"], field + ".name", absl::StrCat("\"", name, "\" is given twice"));
  }
}

void ReadSettings(YamlReader& in, const YAML::Node& root, Settings& settings) {
  in.ForEach(
      root["interfaces"], "interfaces", [&](const YAML::Node& item, const std::string& field) {
        std::string name;
        in.Read(item, field, name);
        if (name.empty() || name.size() >= IFNAMSIZ) {
          in.Fail(item, field, absl::StrCat("\"", name, "\" is not the name of an interface"));
        }
        AddOnce(in, item, field, name, name, settings.interfaces);
      });
  ReadSnat(in, root["snat"], settings.snat);
  std::string unknown = "reset";
  in.Read(root["unknown_tcp"], "unknown_tcp", unknown);
  if (unknown != "reset" && unknown != "drop") {
    in.Fail(root["unknown_tcp"], "unknown_tcp",
            absl::StrCat("\"", unknown, "\" is not reset or drop"));
  }
  settings.reset_unknown = unknown == "reset";
  if (in.ExpectMap(root["limits"], "limits", {"connections"})) {
    in.Read(root["limits"]["connections"], "limits.connections", settings.connections, 16, 8 << 20);
  }
  ReadExpiry(in, root["expiry"], settings.expiry);
  ReadMoves(in, root["moves"], settings.moves);
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& file) {
  YamlReader in(file);
  const YAML::Node root = in.Parse(text);
  Config config;
  if (in.ok() && in.ExpectMap(root, "",
                              {"interfaces", "snat", "unknown_tcp", "limits", "expiry", "moves",
                               "services"})) {
    ReadSettings(in, root, config.settings);
    in.ForEach(root["services"], "services", [&](const YAML::Node& item, const std::string& field) {
      ReadService(in, item, field, config.desired);
    });
    if (in.ok() && config.settings.interfaces.empty()) {
      in.Fail(root, "interfaces", "names no interface to attach to");
    }
  }
  if (!in.ok()) return in.status();
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    return ErrnoStatus(errno != 0 ? errno : EIO, absl::StrCat("read configuration file ", file));
  return ParseConfig(text.str(), file);
}

}  // namespace unpin
