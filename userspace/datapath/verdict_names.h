// SPDX-License-Identifier: Apache-2.0
// The names under which an operator sees what the data plane did.
#pragma once

#include "absl/strings/string_view.h"
#include "bpf/abi.h"

namespace unpin {

// "forward_c2s", "drop_ttl", ...; empty for what is not a verdict.
absl::string_view VerdictName(unpin_verdict verdict);

}  // namespace unpin
