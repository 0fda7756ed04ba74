// SPDX-License-Identifier: Apache-2.0
// The segments Unpin invents, both to the client, as whole Ethernet frames: an HTTP/2 GOAWAY, and an RST. Pure.
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

// The RST of a connection whose backend is dead: at the number after the last byte that passed to the client, which is the
// one it expects unless it has lost some (RFC 5961 section 3 then makes it ask, and the data plane answers).
std::vector<uint8_t> BuildResetFrame(const unpin_flow& s2c);

}  // namespace unpin
