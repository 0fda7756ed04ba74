// SPDX-License-Identifier: Apache-2.0
// The one segment Unpin invents: an HTTP/2 GOAWAY to the client, as a whole Ethernet frame. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "bpf/abi.h"

namespace unpin {

// The frame that carries the GOAWAY of a committed connection, as its server would have sent it: addresses and MACs of the
// flow's rewrite, sequence number at the boundary, and the acknowledgement, window and timestamps seen last.
//
// Requires: `s2c.splice` is committed.
std::vector<uint8_t> BuildGoawayFrame(const unpin_flow& s2c);

}  // namespace unpin
