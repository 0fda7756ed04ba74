// SPDX-License-Identifier: Apache-2.0
// Desired states to test with: VIPs 10.9.0.N:50051, backends 10.1.N.2:50051.
#pragma once

#include <initializer_list>
#include <string>

#include "userspace/model/service.h"

namespace unpin {

inline Endpoint Vip(uint8_t n) { return {{0x0a090000u | n}, 50051}; }
inline Endpoint Backend(uint8_t n) { return {{0x0a010002u | uint32_t{n} << 8}, 50051}; }

inline ServiceWithBackends ServiceOf(const std::string& name, Endpoint vip,
                                     std::initializer_list<uint8_t> backends) {
  ServiceWithBackends service;
  service.spec = {.name = name, .vip = vip, .snat = true};
  for (const uint8_t n : backends) {
    service.backends[Backend(n)] = {.endpoint = Backend(n), .weight = 100, .draining = false};
  }
  return service;
}

// alpha at VIP 1 with backends 1 to 3, beta at VIP 2 with backends 1 and 2.
inline Desired TwoServices() {
  return {{"alpha", ServiceOf("alpha", Vip(1), {1, 2, 3})},
          {"beta", ServiceOf("beta", Vip(2), {1, 2})}};
}

}  // namespace unpin
