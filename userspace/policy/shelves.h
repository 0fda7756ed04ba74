// SPDX-License-Identifier: Apache-2.0
// The movable connections of some backends, each backend's in the order of their loads: found by load, and taken. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "userspace/policy/plan_moves.h"

namespace unpin {

// A million connections are put up in some tens of milliseconds; each search and each taking is O(log n) then.
class Shelves {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Puts up the connections of each `wanted` backend that are movable, carry load and are not in `stay` (sorted).
  Shelves(std::span<const PlanConnection> connections, const std::vector<bool>& wanted,
          std::span<const uint32_t> stay);

  // Places on a backend's shelf, kNone if there is none: the lightest of at least `load`, the heaviest of at most `load`.
  uint32_t LightestFrom(uint32_t backend, double load);
  uint32_t HeaviestUpTo(uint32_t backend, double load);
  // The next lighter one than the one at `place`.
  uint32_t Below(uint32_t backend, uint32_t place);

  uint32_t ConnectionAt(uint32_t place) const { return entries_[place].connection; }
  double LoadAt(uint32_t place) const;
  void Take(uint32_t place);

 private:
  struct Entry {
    uint32_t key = 0;  // the load's bits, which sort as the load does
    uint32_t connection = 0;
  };

  static void Sort(std::vector<Entry>& entries);
  uint32_t Available(uint32_t backend, uint32_t end);

  std::vector<Entry> entries_;    // shelf after shelf, lightest first
  std::vector<uint32_t> begins_;  // of the shelves; one more than there are backends
  // Of each place, a place on the way to the next one that is not taken: above (or itself), and below.
  std::vector<uint32_t> above_;
  std::vector<uint32_t> below_;
};

}  // namespace unpin
