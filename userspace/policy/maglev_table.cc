// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/maglev_table.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace unpin {
namespace {

// One backend's walk over the slots, in its own pseudo-random order.
struct Walk {
  BackendId id;
  uint32_t next;
  uint32_t stride;  // in [1, slots), so a walk over a prime visits every slot
  uint32_t weight;
};

Walk StartWalk(const WeightedBackend& backend, uint32_t slots) {
  const uint64_t high = backend.identity >> 32;
  const uint64_t low = backend.identity & 0xffffffff;
  return Walk{.id = backend.id,
              .next = static_cast<uint32_t>(high % slots),
              .stride = static_cast<uint32_t>(low % (slots - 1) + 1),
              .weight = backend.weight};
}

// When a backend takes its turn number `turn`: turns of weight w come w times as often as those of weight 1.
// The half turn of lead makes the last, unfinished round fall to the backends that are furthest behind.
struct Turn {
  uint64_t time;
  uint32_t walk;  // index: walks are ordered by identity, so ties fall alike everywhere
  uint32_t turn;

  bool operator>(const Turn& other) const {
    return std::tie(time, walk) > std::tie(other.time, other.walk);
  }
};

Turn TurnOf(uint32_t walk, uint32_t weight, uint32_t turn) {
  return Turn{.time = ((2 * uint64_t{turn} + 1) << 40) / weight, .walk = walk, .turn = turn};
}

std::vector<Walk> StartWalks(std::span<const WeightedBackend> backends, uint32_t slots) {
  std::vector<WeightedBackend> ordered(backends.begin(), backends.end());
  std::erase_if(ordered, [](const WeightedBackend& backend) { return backend.weight == 0; });
  std::ranges::sort(ordered, {}, &WeightedBackend::identity);

  std::vector<Walk> walks;
  walks.reserve(ordered.size());
  for (const WeightedBackend& backend : ordered) walks.push_back(StartWalk(backend, slots));
  return walks;
}

void Advance(Walk& walk, uint32_t slots) {
  walk.next += walk.stride;
  if (walk.next >= slots) walk.next -= slots;
}

}  // namespace

uint64_t BackendIdentity(const Endpoint& endpoint) {
  // The finalizer of MurmurHash3: a bijection, so no two endpoints share an identity.
  uint64_t x = (uint64_t{endpoint.address.bits} << 16) | endpoint.port;
  x += 0x9e3779b97f4a7c15;  // else 0.0.0.0:0 would be its own image
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

std::vector<BackendId> BuildMaglevTable(std::span<const WeightedBackend> backends, uint32_t slots) {
  std::vector<Walk> walks = StartWalks(backends, slots);
  if (walks.empty()) return {};

  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (uint32_t i = 0; i < walks.size(); ++i) turns.push(TurnOf(i, walks[i].weight, 0));

  std::vector<BackendId> table(slots);
  std::vector<bool> taken(slots, false);
  for (uint32_t filled = 0; filled < slots; ++filled) {
    const Turn turn = turns.top();
    turns.pop();
    Walk& walk = walks[turn.walk];
    while (taken[walk.next]) Advance(walk, slots);
    table[walk.next] = walk.id;
    taken[walk.next] = true;
    turns.push(TurnOf(turn.walk, walk.weight, turn.turn + 1));
  }
  return table;
}

}  // namespace unpin
