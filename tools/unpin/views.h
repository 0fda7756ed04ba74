// SPDX-License-Identifier: Apache-2.0
// The admin API's messages as tables for a person. Pure.
#pragma once

#include <string>

#include "proto/unpin/v1/admin.pb.h"

namespace unpin {

std::string TextOf(const v1::AgentStatus& status);
std::string TextOf(const v1::ListServicesResponse& response);
std::string TextOf(const v1::ListBackendsResponse& response);
std::string TextOf(const v1::ListConnectionsResponse& response);
std::string TextOf(const v1::ListMovesResponse& response);
std::string TextOf(const v1::RebalanceResponse& response);
std::string TextOf(const v1::Counters& counters);
// One screen of `unpin top`.
std::string TopText(const v1::ListBackendsResponse& backends, const v1::ListMovesResponse& moves);
std::string TextOf(const v1::Event& event);

}  // namespace unpin
