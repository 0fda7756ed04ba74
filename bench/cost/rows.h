// SPDX-License-Identifier: Apache-2.0
// What is measured: one Row a kind of packet. A new program or stage is a new entry in Rows().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bpf/abi.h"
#include "tests/testkit/packet.h"
#include "tests/testkit/private_network.h"

namespace unpin::bench {

struct FlowEntry {
  unpin_flow_key key;
  unpin_flow flow;
};

enum class Target {
  kFloor,      // swaps the MACs and transmits
  kLookup,     // likewise, and finds and counts the flow
  kProduct,    // the packet goes to the data plane
  kHandshake,  // SYN, SYN-ACK and ACK in turn go there
};

// Not above `ratio` floors at `flows` flows; or, with `beyond`, not above that row's ratio plus `ratio`.
struct Bar {
  uint32_t flows = 1;
  double ratio = 0;
  std::string beyond = {};
};

struct Row {
  std::string name;
  Target target = Target::kProduct;
  std::vector<testkit::Bytes> frames = {};  // one; three for a handshake
  uint32_t ifindex = 0;                     // where they arrive
  bool varies_source = true;                // which address tells flows apart
  uint32_t seq = 0;                         // of each flow's first packet
  uint32_t seq_step = 0;                    // from one packet of a flow to its next
  std::vector<uint32_t> verdicts = {};      // each packet of `frames` must meet its own
  std::function<FlowEntry(uint32_t index)> flow =
      {};  // what stands in the flow table; none: no flows
  std::vector<Bar> bars = {};
  bool has_endless_flows = false;  // each packet is of another client
};

inline constexpr char kVip[] = "10.9.0.1";
inline constexpr uint16_t kVipPort = 80;
inline constexpr char kBackend[] = "10.1.1.2";
inline constexpr uint16_t kBackendPort = 50051;
inline constexpr uint32_t kFirstClient = 11u << 24;  // 11.0.0.0 and up

std::vector<Row> Rows(const testkit::PrivateNetwork& network);

}  // namespace unpin::bench
