// SPDX-License-Identifier: Apache-2.0
// The controller's picture of who is up: probes, outliers, caps, and what follows for tables and connections.
#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "userspace/agent/controller.h"
#include "userspace/policy/availability.h"

namespace unpin {
namespace {

constexpr Duration kEvacuation = std::chrono::milliseconds(100);
constexpr Duration kDrainWindowAfterRestart = std::chrono::seconds(1);

absl::string_view NewsOf(Health health) {
  switch (health) {
    case Health::kAwaited:
      return " is awaited";
    case Health::kUp:
      return " is up";
    case Health::kUnwell:
      return " does not serve: ";
    case Health::kRefusing:
      return " refuses connections: ";
    case Health::kSilent:
      return " is lost: ";
  }
  return "";
}

}  // namespace

bool Controller::IsEjected(const std::string& service, BackendId id, TimePoint now) const {
  const auto outlier = outliers_.find(service);
  return outlier != outliers_.end() && outlier->second.IsEjected(id, now);
}

Health Controller::HealthOf(const ServiceSpec& service, BackendId id) const {
  if (service.policy.health.kind == HealthSettings::Kind::kNone) return Health::kUp;
  const auto found = health_.find(id);
  return found == health_.end() ? Health::kUp : found->second.health();
}

// Backends that join others wait for their first good probe: who is not there yet must not be offered.
std::vector<BackendId> Controller::AwaitNewcomers(const Desired& desired, const IdRegistry& ids) {
  std::vector<BackendId> newcomers;
  for (const auto& [name, service] : desired) {
    const auto before = desired_.find(name);
    if (before == desired_.end() || before->second.backends.empty()) continue;
    if (service.spec.policy.health.kind == HealthSettings::Kind::kNone) continue;
    for (const auto& [endpoint, backend] : service.backends) {
      if (before->second.backends.contains(endpoint)) continue;
      const BackendId id = *ids.IdOf(service.spec.vip, endpoint);
      health_.insert_or_assign(id, HealthState::Awaited());
      trouble_[id] = "waits for its first good probe";
      newcomers.push_back(id);
    }
  }
  return newcomers;
}

BackendStates Controller::StatesOf(const Desired& desired, const IdRegistry& ids,
                                   TimePoint now) const {
  BackendStates states;
  for (const auto& [name, service] : desired) {
    std::vector<BackendId> of_service;
    std::vector<BackendCondition> conditions;
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids.IdOf(service.spec.vip, endpoint);
      of_service.push_back(id);
      conditions.push_back({.wanted = !backend.draining && backend.weight > 0,
                            .health = HealthOf(service.spec, id),
                            .ejected = IsEjected(name, id, now)});
    }
    const std::vector<BackendRow::State> found = Availability(conditions);
    for (size_t i = 0; i < found.size(); ++i) states[of_service[i]] = found[i];
  }
  return states;
}

std::vector<HealthTarget> Controller::TargetsOf(const Desired& desired) const {
  std::vector<HealthTarget> targets;
  for (const auto& [name, service] : desired) {
    if (service.spec.policy.health.kind == HealthSettings::Kind::kNone) continue;
    for (const auto& [endpoint, backend] : service.backends) {
      targets.push_back({.backend = *ids_.IdOf(service.spec.vip, endpoint),
                         .endpoint = endpoint,
                         .settings = service.spec.policy.health});
    }
  }
  return targets;
}

// Tables first: whoever is reset reconnects at once, and must not be offered the same backend.
absl::Status Controller::ApplyStates(TimePoint now) {
  const TableImage before = sync_.installed();
  absl::Status status = sync_.Sync(ImageOf(desired_, ids_, StatesOf(desired_, ids_, now)));
  std::vector<BackendId> gone;
  for (const auto& [id, row] : sync_.installed().backends) {
    const IdRegistry::Backend* backend = ids_.FindBackend(id);
    const auto old = before.backends.find(id);
    const bool was_down =
        old != before.backends.end() && old->second.state == BackendRow::State::kDown;
    if (row.state != BackendRow::State::kDown || was_down || backend == nullptr || backend->retired)
      continue;
    gone.push_back(id);
  }
  if (!gone.empty()) status.Update(AbandonConnectionsOf(gone, now));
  UpdateDrains(now);
  Hurry(now);
  return status;
}

// Backends that are ejected, say that they do not serve, or have stopped listening are emptied like draining ones: what
// they have begun they can end. Offered again, they keep what they have.
void Controller::UpdateDrains(TimePoint now) {
  for (const auto& [name, service] : desired_) {
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
      const Health health = HealthOf(service.spec, id);
      const auto row = sync_.installed().backends.find(id);
      const bool leaves =
          health == Health::kUnwell || health == Health::kRefusing || IsEjected(name, id, now);
      const bool empties = row != sync_.installed().backends.end() &&
                           row->second.state == BackendRow::State::kDraining &&
                           (leaves || backend.draining);
      const bool emptying = drains_.Since(id).has_value();
      if (empties && !emptying)
        drains_.Begin(id, backend.draining ? kDrainWindowAfterRestart : kEvacuation, now);
      if (empties || !emptying || backend.draining) continue;
      drains_.End(id);
      loads_.Forget(id);
    }
  }
}

absl::Status Controller::AbandonConnectionsOf(const std::vector<BackendId>& backends,
                                              TimePoint now) {
  scanned_ = TimePoint();
  absl::Status status = Scan(now);
  std::map<BackendId, size_t> resets;
  for (const Connection& connection : connections_) {
    if (connection.closed || std::ranges::find(backends, connection.backend) == backends.end())
      continue;
    const absl::Status abandoned = ports_.splicer.Abandon(connection.key);
    if (!absl::IsNotFound(abandoned)) status.Update(abandoned);
    resets[connection.backend] += abandoned.ok();
  }
  for (const auto& [backend, count] : resets) {
    connections_reset_ += count;
    const IdRegistry::Backend* row = ids_.FindBackend(backend);
    Publish("connections-reset", row == nullptr ? "" : row->service_name,
            absl::StrCat("backend ", EndpointOf(backend).ToString(), ": ", count,
                         " connections reset, so that their clients reconnect at once"),
            now);
  }
  scanned_ = TimePoint();
  return status;
}

absl::Status Controller::OnProbe(const ProbeResult& result, TimePoint now) {
  absl::MutexLock lock(&mutex_);
  const IdRegistry::Backend* backend = ids_.FindBackend(result.backend);
  if (backend == nullptr || backend->retired) return absl::OkStatus();
  const auto service = desired_.find(backend->service_name);
  if (service == desired_.end()) return absl::OkStatus();
  const HealthSettings& settings = service->second.spec.policy.health;
  if (result.ok())
    trouble_.erase(result.backend);
  else
    trouble_[result.backend] = result.detail;
  if (!health_[result.backend].OnProbe(result, settings.rise, settings.fall))
    return absl::OkStatus();
  Publish(
      result.ok() ? "backend-up" : "backend-down", backend->service_name,
      absl::StrCat("backend ", backend->endpoint.ToString(), NewsOf(result.found), result.detail),
      now);
  return ApplyStates(now);
}

absl::Status Controller::JudgeOutliers(TimePoint now) {
  bool changed = now >= ejection_ends_;
  ejection_ends_ = TimePoint::max();
  for (const auto& [name, service] : desired_) {
    const OutlierSettings& settings = service.spec.policy.outlier;
    if (settings.latency_factor <= 0) continue;
    std::vector<OutlierSample> samples;
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
      // Whoever is not up is no measure for others, and cannot be the one that is left.
      if (HealthOf(service.spec, id) != Health::kUp || backend.draining) continue;
      const LoadTracker::BackendLoad load = loads_.LoadOf(id);
      samples.push_back({.backend = id,
                         .latency_s = load.latency_seconds(),
                         .requests = load.mean_open + load.completions_per_second});
    }
    Outlier& outlier = outliers_[name];
    for (const BackendId id : outlier.Judge(samples, settings, now)) {
      changed = true;
      Publish("backend-ejected", name,
              absl::StrFormat("backend %s answers in %.0f ms, more than %g times the median of the "
                              "others: it gets nothing for a while",
                              EndpointOf(id).ToString(), loads_.LoadOf(id).latency_seconds() * 1000,
                              settings.latency_factor),
              now);
    }
    ejection_ends_ = std::min(ejection_ends_, outlier.NextEnd(now));
  }
  return changed ? ApplyStates(now) : absl::OkStatus();
}

absl::Status Controller::SetRooms() {
  absl::Status status;
  for (const auto& [name, service] : desired_) {
    const uint32_t most = service.spec.policy.connections_per_backend;
    for (const auto& [endpoint, backend] : service.backends) {
      const BackendId id = *ids_.IdOf(service.spec.vip, endpoint);
      std::optional<uint32_t> room;
      if (most > 0) room = most - std::min<uint64_t>(most, loads_.LoadOf(id).connections);
      if (!room && !capped_.contains(id)) continue;
      status.Update(ports_.tables.SetRoom(id, room));
      if (room)
        capped_.insert(id);
      else
        capped_.erase(id);
    }
  }
  return status;
}

}  // namespace unpin
