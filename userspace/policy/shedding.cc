// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/shedding.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace unpin {
namespace {

constexpr double kEpsilon = 1e-9;  // of a load: sums differ in the last digits by their order
constexpr double kAnyLoad = std::numeric_limits<double>::infinity();

}  // namespace

Shedding::Shedding(std::span<const PlanConnection> connections, Balance& balance, const Goal& goal)
    : connections_(connections),
      balance_(balance),
      goal_(goal),
      shelves_(connections, Wanted(balance, goal), balance.elephants()) {}

// Backends whose connections may have to be moved.
std::vector<bool> Shedding::Wanted(const Balance& balance, const Goal& goal) {
  std::vector<bool> wanted(balance.loads().size(), goal.displace);
  for (uint32_t i = 0; i < wanted.size(); ++i)
    wanted[i] = wanted[i] || balance.RatioOf(i) > goal.ratio;
  return wanted;
}

bool Shedding::IsOver(uint32_t backend) const {
  return -RoomOf(backend) > kEpsilon * CapOf(backend);
}

std::vector<Relocation> Shedding::Run() {
  for (uint32_t i = 0; i < balance_.loads().size(); ++i) {
    rooms_.push_back({RoomOf(i), i});
    if (IsOver(i) && balance_.RatioOf(i) > goal_.ratio + goal_.ignored)
      next_.push_back({kAnyLoad, i});
  }
  std::ranges::make_heap(rooms_);
  std::ranges::make_heap(next_);
  ShedAll();
  // One that fits nowhere: as many as there are backends, so that two never swap for ever.
  for (size_t i = 0; goal_.displace && i < rooms_.size() && !stuck_.empty(); ++i) {
    const uint32_t from = stuck_.back();
    stuck_.pop_back();
    if (Displace(from))
      ShedAll();
    else
      Ease(from);
  }
  for (const uint32_t from : stuck_) Ease(from);
  return std::move(moves_);
}

void Shedding::ShedAll() {
  while (!next_.empty() && moves_.size() < kMost) {
    std::ranges::pop_heap(next_);
    const uint32_t from = next_.back().backend;
    next_.pop_back();
    if (!IsOver(from)) continue;
    const uint32_t place = Pick(from);
    if (place == Shelves::kNone) {
      stuck_.push_back(from);
      continue;
    }
    const double load = shelves_.LoadAt(place);
    if (next_.empty() || load >= next_.front().load) Shed(from, place, Roomiest());
    next_.push_back({load, from});
    std::ranges::push_heap(next_);
  }
}

uint32_t Shedding::Roomiest() {
  while (rooms_.front().load != RoomOf(rooms_.front().backend)) {
    std::ranges::pop_heap(rooms_);
    rooms_.back().load = RoomOf(rooms_.back().backend);
    std::ranges::push_heap(rooms_);
  }
  return rooms_.front().backend;
}

uint32_t Shedding::Pick(uint32_t from) {
  const double room = RoomOf(Roomiest()) + kEpsilon;
  if (room <= kEpsilon) return Shelves::kNone;
  const uint32_t enough = shelves_.LightestFrom(from, -RoomOf(from) - kEpsilon);
  if (enough != Shelves::kNone && shelves_.LoadAt(enough) <= room) return enough;
  return shelves_.HeaviestUpTo(from, room);
}

void Shedding::Shed(uint32_t from, uint32_t place, uint32_t to) {
  shelves_.Take(place);
  balance_.Move(shelves_.LoadAt(place), from, to);
  moves_.push_back({.connection = shelves_.ConnectionAt(place), .to = to});
  // The heap finds less room by itself, more it must be told: there is one entry for each backend.
  if (RoomOf(from) > 0) {
    const auto offer = std::ranges::find(rooms_, from, &Offer::backend);
    offer->load = RoomOf(from);
    std::ranges::make_heap(rooms_);
  }
}

// The lightest of what is left here goes where the least must give way.
bool Shedding::Displace(uint32_t from) {
  const uint32_t place = shelves_.LightestFrom(from, 0);
  if (place == Shelves::kNone) return false;
  const double load = shelves_.LoadAt(place);
  const double room = RoomOf(Roomiest());
  std::optional<Offer> best;
  for (uint32_t to = 0; to < rooms_.size(); ++to) {
    if (to == from || load > CapOf(to) || (best && RoomOf(to) <= best->load)) continue;
    if (balance_.HoldsElephant(to) || !CanMakeRoom(to, load, room)) continue;
    best = {RoomOf(to), to};
  }
  if (!best) return false;
  Shed(from, place, best->backend);
  for (const uint32_t over : {from, best->backend}) {
    next_.push_back({kAnyLoad, over});
    std::ranges::push_heap(next_);
  }
  return true;
}

// Whether lighter ones can leave `backend` for it to take `load`.
bool Shedding::CanMakeRoom(uint32_t backend, double load, double room_elsewhere) {
  constexpr int kMostEvicted = 1000;  // for one that moves: more are not worth it
  double missing = load - RoomOf(backend);
  const double heaviest = std::min(room_elsewhere, load * (1 - kEpsilon));
  uint32_t place = shelves_.HeaviestUpTo(backend, heaviest);
  for (int i = 0; i < kMostEvicted && place != Shelves::kNone && missing > 0; ++i) {
    missing -= shelves_.LoadAt(place);
    place = shelves_.Below(backend, place);
  }
  return missing <= 0;
}

// The goal is out of reach: what lowers the maximum all the same.
void Shedding::Ease(uint32_t from) {
  while (IsOver(from) && moves_.size() < kMost) {
    const uint32_t to = Roomiest(), place = shelves_.LightestFrom(from, 0);
    if (place == Shelves::kNone || balance_.shares()[to] <= 0) return;
    const double after = (balance_.loads()[to] + shelves_.LoadAt(place)) / balance_.shares()[to];
    if (after >= balance_.RatioOf(from) - kEpsilon) return;
    Shed(from, place, to);
  }
}

}  // namespace unpin
