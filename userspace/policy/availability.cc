// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/availability.h"

#include <algorithm>
#include <functional>

namespace unpin {
namespace {

using Choice = std::function<bool(const BackendCondition&)>;

// Awaited backends count neither way: adding many must not cause a panic.
bool IsPanic(std::span<const BackendCondition> backends) {
  size_t known = 0, up = 0;
  for (const BackendCondition& backend : backends) {
    if (!backend.wanted || backend.health == Health::kAwaited) continue;
    ++known;
    up += backend.health == Health::kUp;
  }
  return up * 100 < known * kPanicPercent;
}

// Who is offered: the first of ever weaker choices that leaves somebody.
Choice ChoiceFor(std::span<const BackendCondition> backends, bool panic) {
  const Choice stands = [panic](const BackendCondition& b) {
    if (!b.wanted) return false;
    return panic ? b.health != Health::kRefusing && b.health != Health::kAwaited
                 : b.health == Health::kUp;
  };
  const Choice is_best = [stands](const BackendCondition& b) { return stands(b) && !b.ejected; };
  const Choice is_awaited = [](const BackendCondition& b) {
    return b.wanted && b.health == Health::kAwaited;
  };
  for (const Choice& choice : {is_best, stands, is_awaited}) {
    if (std::ranges::any_of(backends, choice)) return choice;
  }
  return [](const BackendCondition& b) { return b.wanted; };
}

}  // namespace

std::vector<BackendRow::State> Availability(std::span<const BackendCondition> backends) {
  const bool panic = IsPanic(backends);
  const Choice is_offered = ChoiceFor(backends, panic);
  std::vector<BackendRow::State> states;
  for (const BackendCondition& backend : backends) {
    if (is_offered(backend))
      states.push_back(BackendRow::State::kServing);
    else if (backend.health == Health::kSilent && !panic)
      states.push_back(BackendRow::State::kDown);
    else
      states.push_back(BackendRow::State::kDraining);
  }
  return states;
}

}  // namespace unpin
