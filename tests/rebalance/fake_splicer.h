// SPDX-License-Identifier: Apache-2.0
// A splicer that notes what it was asked and answers what it was told to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "userspace/model/ports.h"

namespace unpin {

struct FakeSplicer : Splicer {
  absl::Status AddPin(ServiceId service, IpAddress client, BackendId to, MoveId move,
                      TimePoint) override {
    calls.push_back(absl::StrCat("pin ", client.ToString(), " service ", service, " to ", to));
    if (pin.ok()) pins[move] = to;
    return pin;
  }
  absl::Status RemovePin(ServiceId, IpAddress client, MoveId move) override {
    calls.push_back(absl::StrCat("unpin ", client.ToString()));
    pins.erase(move);
    return absl::OkStatus();
  }
  absl::StatusOr<Armed> Arm(const ConnectionKey& key, bool allow_trim, Duration age) override {
    calls.push_back(absl::StrCat(allow_trim ? "trim " : "arm ", key.client.ToString()));
    min_age = age;
    return armed;
  }
  absl::Status Disarm(const ConnectionKey& key) override {
    calls.push_back(absl::StrCat("disarm ", key.client.ToString()));
    return disarm;
  }
  absl::Status EmitGoaway(const ConnectionKey& key) override {
    calls.push_back(absl::StrCat("goaway ", key.client.ToString()));
    return emit;
  }
  absl::StatusOr<std::vector<ConnectionKey>> Unacknowledged() override { return unacknowledged; }
  absl::Status Abandon(const ConnectionKey& key) override {
    calls.push_back(absl::StrCat("abandon ", key.client.ToString()));
    return absl::OkStatus();
  }

  std::vector<std::string> calls;
  std::map<MoveId, BackendId> pins;
  Duration min_age{};
  absl::Status pin, disarm, emit;
  absl::StatusOr<Armed> armed = Armed{.committed = true};
  std::vector<ConnectionKey> unacknowledged;
};

}  // namespace unpin
