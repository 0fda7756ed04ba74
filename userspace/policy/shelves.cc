// SPDX-License-Identifier: Apache-2.0
#include "userspace/policy/shelves.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace unpin {
namespace {

// Follows the links to the one that points to itself, and shortens the way for the next time.
uint32_t Follow(std::vector<uint32_t>& links, uint32_t at) {
  while (links[at] != at) at = links[at] = links[links[at]];
  return at;
}

}  // namespace

Shelves::Shelves(std::span<const PlanConnection> connections, const std::vector<bool>& wanted,
                 std::span<const uint32_t> stay)
    : begins_(wanted.size() + 1) {
  auto staying = stay.begin();
  std::vector<Entry> sorted;
  for (uint32_t i = 0; i < connections.size(); ++i) {
    const PlanConnection& c = connections[i];
    if (staying != stay.end() && *staying == i) {
      ++staying;
    } else if (wanted[c.backend] && c.movable && c.load > 0) {
      sorted.push_back({.key = std::bit_cast<uint32_t>(c.load), .connection = i});
      ++begins_[c.backend + 1];
    }
  }
  Sort(sorted);
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  entries_.resize(sorted.size());
  std::vector<uint32_t> ends(begins_.begin(), begins_.end() - 1);
  for (const Entry& entry : sorted) entries_[ends[connections[entry.connection].backend]++] = entry;
  above_.resize(entries_.size() + 1);
  std::iota(above_.begin(), above_.end(), 0);
  below_ = above_;
}

// Equal loads stay in the order of the connections. Radix sort: a comparison sort of a million takes half the time that a
// whole plan may.
void Shelves::Sort(std::vector<Entry>& entries) {
  constexpr size_t kFew = 4096;
  constexpr uint32_t kBits = 11, kDigits = 1 << kBits;
  if (entries.size() < kFew) {
    std::ranges::stable_sort(entries, {}, &Entry::key);
    return;
  }
  std::vector<Entry> other(entries.size());
  for (uint32_t shift = 0; shift < 32; shift += kBits) {
    std::array<uint32_t, kDigits + 1> begins{};
    for (const Entry& entry : entries) ++begins[(entry.key >> shift) % kDigits + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const Entry& entry : entries) other[begins[(entry.key >> shift) % kDigits]++] = entry;
    entries.swap(other);
  }
}

double Shelves::LoadAt(uint32_t place) const { return std::bit_cast<float>(entries_[place].key); }

uint32_t Shelves::LightestFrom(uint32_t backend, double load) {
  const auto first = entries_.begin() + begins_[backend];
  const auto last = entries_.begin() + begins_[backend + 1];
  const auto found = std::partition_point(
      first, last, [&](const Entry& e) { return std::bit_cast<float>(e.key) < load; });
  const uint32_t place = Follow(above_, static_cast<uint32_t>(found - entries_.begin()));
  return place < begins_[backend + 1] ? place : kNone;
}

uint32_t Shelves::HeaviestUpTo(uint32_t backend, double load) {
  const auto first = entries_.begin() + begins_[backend];
  const auto last = entries_.begin() + begins_[backend + 1];
  const auto found = std::partition_point(
      first, last, [&](const Entry& e) { return std::bit_cast<float>(e.key) <= load; });
  return Available(backend, static_cast<uint32_t>(found - entries_.begin()));
}

uint32_t Shelves::Below(uint32_t backend, uint32_t place) { return Available(backend, place); }

// The last one before `end` that is not taken.
uint32_t Shelves::Available(uint32_t backend, uint32_t end) {
  const uint32_t found = Follow(below_, end);  // one above the place
  return found > begins_[backend] ? found - 1 : kNone;
}

void Shelves::Take(uint32_t place) {
  above_[place] = place + 1;
  below_[place + 1] = place;
}

}  // namespace unpin
