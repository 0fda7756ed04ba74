// SPDX-License-Identifier: Apache-2.0
// The world of the simulation: backends, connections with loads that drift and burst, and clients that obey, dawdle, refuse
// or come back as somebody else.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace unpin::sim {

struct FleetSettings {
  uint32_t backends = 1000;
  uint32_t connections = 1'000'000;
  double zipf = 1.0;
  double refusing = 0;  // share of the clients that ignore a GOAWAY
  double stray = 0;     // share that reconnects from another address: its pin is not met
};

enum class Client : uint8_t { kObeys, kRefuses, kStrays };

struct Fleet {
  Fleet(const FleetSettings& settings, uint64_t seed);

  // Each load changes a little; a few thousandths of a per cent burst for a while.
  void Drift(double burst_share);
  void Step(double share, float factor);  // the load of a random share of the connections, for good
  void Fail(uint32_t backend);            // its connections come back on the others at once
  void Steer(uint32_t connection);        // a new connection, by a table that knows only who serves
  double Random() { return std::uniform_real_distribution<double>(0, 1)(random); }

  std::mt19937_64 random;
  std::vector<bool> serving;
  std::vector<uint32_t> backend;  // of each connection, as all below
  std::vector<float> usual;       // load without bursts and drift
  std::vector<float> load;
  std::vector<Client> client;

 private:
  std::vector<std::pair<uint32_t, uint32_t>> bursts_;  // connection, ticks left
};

}  // namespace unpin::sim
