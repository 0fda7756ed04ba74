// SPDX-License-Identifier: Apache-2.0
// Two flows of the data plane, read as one connection. Pure.
#pragma once

#include "bpf/abi.h"
#include "userspace/base/clock.h"
#include "userspace/model/connection.h"

namespace unpin {

struct FlowPair {
  unpin_flow_key key = {};  // of c2s
  unpin_flow c2s = {};
  unpin_flow s2c = {};
};

// What the connection speaks: c2s decides, unless the server answers an HTTP/2 preface otherwise.
Protocol ProtocolOf(const unpin_flow& c2s, const unpin_flow& s2c);

// Why a move of the connection would be refused now: the checks of arm_goaway, in its order.
Refusal RefusalOf(const unpin_flow& c2s, const unpin_flow& s2c, TimePoint now, Duration min_age);

Connection ConnectionOf(const FlowPair& pair, TimePoint now, Duration min_age);

}  // namespace unpin
