// SPDX-License-Identifier: Apache-2.0
// Takes load off overloaded backends in few moves, at any size: the plan of a large case, the first guess of a small one. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "userspace/policy/balance.h"
#include "userspace/policy/plan_moves.h"
#include "userspace/policy/shelves.h"

namespace unpin {

struct Relocation {
  uint32_t connection = 0;
  uint32_t to = 0;
};

// Each overloaded backend gives up the lightest connection that is enough by itself, else the heaviest that fits anywhere;
// the heaviest of all such goes first, to where there is most room. (First-fit decreasing, but for what may stay.)
class Shedding {
 public:
  struct Goal {
    double ratio = 1;       // at or under which each backend should end
    double ignored = 0;     // backends that are over it by less than this are left alone
    bool displace = false;  // let one that fits nowhere go where lighter ones then make room for it
  };

  static constexpr size_t kMost = 100'000;  // moves; a plan may be continued by the next

  // `balance` follows the moves.
  Shedding(std::span<const PlanConnection> connections, Balance& balance, const Goal& goal);

  std::vector<Relocation> Run();

 private:
  struct Offer {
    double load = 0;
    uint32_t backend = 0;
    friend auto operator<=>(const Offer&, const Offer&) = default;
  };

  static std::vector<bool> Wanted(const Balance& balance, const Goal& goal);
  double CapOf(uint32_t backend) const { return goal_.ratio * balance_.shares()[backend]; }
  double RoomOf(uint32_t backend) const { return CapOf(backend) - balance_.loads()[backend]; }
  bool IsOver(uint32_t backend) const;
  uint32_t Roomiest();
  uint32_t Pick(uint32_t from);
  void ShedAll();
  void Shed(uint32_t from, uint32_t place, uint32_t to);
  bool Displace(uint32_t from);
  bool CanMakeRoom(uint32_t backend, double load, double room_elsewhere);
  void Ease(uint32_t from);

  std::span<const PlanConnection> connections_;
  Balance& balance_;
  const Goal goal_;
  Shelves shelves_;
  std::vector<Offer> rooms_;     // a heap; what has become less since is found out at the top
  std::vector<Offer> next_;      // a heap: what each overloaded backend would give up next, at most
  std::vector<uint32_t> stuck_;  // overloaded, and nothing of theirs fits
  std::vector<Relocation> moves_;
};

}  // namespace unpin
