// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/overrides.h"

#include "absl/strings/str_cat.h"
#include "userspace/agent/yaml_reader.h"

namespace unpin {
namespace {

constexpr uint32_t kVersion = 1;

const BackendSpec* FindBackend(const Desired& desired, const std::string& service,
                               const Endpoint& endpoint) {
  const auto found = desired.find(service);
  if (found == desired.end()) return nullptr;
  const auto backend = found->second.backends.find(endpoint);
  return backend == found->second.backends.end() ? nullptr : &backend->second;
}

}  // namespace

Overrides Difference(const Desired& file, const Desired& desired) {
  Overrides overrides;
  for (const auto& [name, service] : desired) {
    const auto before = file.find(name);
    if (before == file.end() || before->second.spec != service.spec) {
      overrides.services[name] = service.spec;
    }
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendSpec* old = FindBackend(file, name, endpoint);
      if (old == nullptr || *old != backend) overrides.backends[{name, endpoint}] = backend;
    }
  }
  for (const auto& [name, service] : file) {
    if (!desired.contains(name)) {
      overrides.services[name] = std::nullopt;
      continue;
    }
    for (const auto& [endpoint, backend] : service.backends) {
      if (FindBackend(desired, name, endpoint) == nullptr) {
        overrides.backends[{name, endpoint}] = std::nullopt;
      }
    }
  }
  return overrides;
}

Desired Apply(const Overrides& overrides, const Desired& file) {
  Desired desired = file;
  for (const auto& [name, spec] : overrides.services) {
    if (spec)
      desired[name].spec = *spec;
    else
      desired.erase(name);
  }
  for (const auto& [key, backend] : overrides.backends) {
    const auto service = desired.find(key.first);
    if (service == desired.end()) continue;
    if (backend)
      service->second.backends[key.second] = *backend;
    else
      service->second.backends.erase(key.second);
  }
  return desired;
}

std::string FormatOverrides(const Overrides& overrides) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "version" << YAML::Value << kVersion;
  out << YAML::Key << "services" << YAML::Value << YAML::BeginSeq;
  for (const auto& [name, spec] : overrides.services) {
    out << YAML::Flow << YAML::BeginMap << YAML::Key << "name" << YAML::Value << name;
    if (spec) {
      out << YAML::Key << "vip" << YAML::Value << spec->vip.ToString() << YAML::Key << "snat"
          << YAML::Value << spec->snat;
    } else {
      out << YAML::Key << "removed" << YAML::Value << true;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::Key << "backends" << YAML::Value << YAML::BeginSeq;
  for (const auto& [key, backend] : overrides.backends) {
    out << YAML::Flow << YAML::BeginMap << YAML::Key << "service" << YAML::Value << key.first
        << YAML::Key << "address" << YAML::Value << key.second.ToString();
    if (backend) {
      out << YAML::Key << "weight" << YAML::Value << backend->weight << YAML::Key << "draining"
          << YAML::Value << backend->draining;
    } else {
      out << YAML::Key << "removed" << YAML::Value << true;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::Key << "complete" << YAML::Value << true << YAML::EndMap;
  return absl::StrCat(out.c_str(), "\n");
}

absl::StatusOr<Overrides> ParseOverrides(const std::string& text, const std::string& file) {
  YamlReader in(file);
  const YAML::Node root = in.Parse(text);
  Overrides overrides;
  uint32_t version = 0;
  if (!in.ok() || !in.ExpectMap(root, "", {"version", "services", "backends", "complete"}))
    return in.status();
  if (in.Require(root, "the file", "version"))
    in.Read(root["version"], "version", version, kVersion, kVersion);
  in.ForEach(root["services"], "services", [&](const YAML::Node& node, const std::string& field) {
    if (!in.ExpectMap(node, field, {"name", "vip", "snat", "removed"}) ||
        !in.Require(node, field, "name"))
      return;
    ServiceSpec spec;
    bool removed = false;
    in.Read(node["removed"], field + ".removed", removed);
    if (!removed) in.Require(node, field, "vip");
    in.Read(node["name"], field + ".name", spec.name);
    in.Read(node["vip"], field + ".vip", spec.vip);
    in.Read(node["snat"], field + ".snat", spec.snat);
    overrides.services[spec.name] = removed ? std::nullopt : std::optional(spec);
  });
  in.ForEach(root["backends"], "backends", [&](const YAML::Node& node, const std::string& field) {
    if (!in.ExpectMap(node, field, {"service", "address", "weight", "draining", "removed"}) ||
        !in.Require(node, field, "service") || !in.Require(node, field, "address")) {
      return;
    }
    std::string service;
    BackendSpec backend;
    bool removed = false;
    in.Read(node["service"], field + ".service", service);
    in.Read(node["address"], field + ".address", backend.endpoint);
    in.Read(node["weight"], field + ".weight", backend.weight, 0, 65535);
    in.Read(node["draining"], field + ".draining", backend.draining);
    in.Read(node["removed"], field + ".removed", removed);
    overrides.backends[{service, backend.endpoint}] =
        removed ? std::nullopt : std::optional(backend);
  });
  // The last key: a file that lost its end would otherwise be a shorter list of changes.
  bool complete = false;
  in.Read(root["complete"], "complete", complete);
  if (!complete) in.Fail(root, "complete", "is missing: the file has lost its end");
  if (!in.ok()) return in.status();
  return overrides;
}

}  // namespace unpin
