// SPDX-License-Identifier: Apache-2.0
// Who must not be moved for now: connections that have just been moved, and clients whose moves come to nothing. Pure: time
// is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "userspace/model/move.h"

namespace unpin {

class CoolDowns {
 public:
  static constexpr Duration kFirstBackOff = std::chrono::seconds(10);
  static constexpr Duration kLongestBackOff = std::chrono::minutes(10);

  // A move has ended: the connection that came of it rests for `rest`; a client that took no notice, or could not be moved,
  // rests for twice as long each time.
  void OnEnded(const Move& move, Duration rest, TimePoint now) {
    if (move.state == MoveState::kReconnected) {
      if (move.new_client) connections_[{*move.new_client, move.connection.vip}] = now + rest;
      clients_.erase(move.connection.client.address);
      return;
    }
    if (move.reason == MoveReason::kOperator) return;
    connections_[move.connection] = now + std::max(rest, kFirstBackOff);
    if (!move.acknowledged) return;  // it says nothing about the client
    BackOff& of_client = clients_[move.connection.client.address];
    of_client.next = of_client.next == Duration::zero()
                         ? kFirstBackOff
                         : std::min(2 * of_client.next, kLongestBackOff);
    of_client.until = now + of_client.next;
  }

  bool MayMove(const ConnectionKey& connection, TimePoint now) const {
    const auto found = connections_.find(connection);
    if (found != connections_.end() && found->second > now) return false;
    const auto client = clients_.find(connection.client.address);
    return client == clients_.end() || client->second.until <= now;
  }

  // What is over is forgotten; a client's record only after a quiet time as long again.
  void Forget(TimePoint now) {
    absl::erase_if(connections_, [&](const auto& entry) { return entry.second <= now; });
    absl::erase_if(
        clients_, [&](const auto& entry) { return entry.second.until + entry.second.next <= now; });
  }

 private:
  struct BackOff {
    TimePoint until;
    Duration next{};
  };
  absl::flat_hash_map<ConnectionKey, TimePoint> connections_;
  absl::flat_hash_map<IpAddress, BackOff> clients_;
};

}  // namespace unpin
