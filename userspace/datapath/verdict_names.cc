// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/verdict_names.h"

namespace unpin {

// No default label: the compiler refuses a verdict without a name.
absl::string_view VerdictName(unpin_verdict verdict) {
  switch (verdict) {
    case UNPIN_CONTINUE:
    case UNPIN_VERDICT_COUNT: return "";
    case UNPIN_PASS_NOT_IPV4: return "pass_not_ipv4";
    case UNPIN_PASS_NOT_TCP: return "pass_not_tcp";
    case UNPIN_PASS_FRAGMENT: return "pass_fragment";
    case UNPIN_PASS_TRUNCATED: return "pass_truncated";
    case UNPIN_PASS_NO_SERVICE: return "pass_no_service";
    case UNPIN_FORWARD_C2S: return "forward_c2s";
    case UNPIN_FORWARD_S2C: return "forward_s2c";
    case UNPIN_FORWARD_SPLICED: return "forward_spliced";
    case UNPIN_FORWARD_TRIMMED: return "forward_trimmed";
    case UNPIN_FORWARD_SYN: return "forward_syn";
    case UNPIN_FORWARD_SYN_RETRY: return "forward_syn_retry";
    case UNPIN_FORWARD_SYN_ACK: return "forward_syn_ack";
    case UNPIN_FORWARD_OPENED: return "forward_opened";
    case UNPIN_REPLY_RESET_UNKNOWN: return "reply_reset_unknown";
    case UNPIN_REPLY_RESET_TABLE_FULL: return "reply_reset_table_full";
    case UNPIN_REPLY_RESET_NO_BACKEND: return "reply_reset_no_backend";
    case UNPIN_REPLY_RESET_BACKENDS_FULL: return "reply_reset_backends_full";
    case UNPIN_REPLY_RESET_OVER_RATE: return "reply_reset_over_rate";
    case UNPIN_REPLY_RESET_ABANDONED: return "reply_reset_abandoned";
    case UNPIN_DROP_TTL: return "drop_ttl";
    case UNPIN_DROP_FRAGMENT: return "drop_fragment";
    case UNPIN_DROP_NO_PORT: return "drop_no_port";
    case UNPIN_DROP_NO_NEIGHBOR: return "drop_no_neighbor";
    case UNPIN_DROP_UNKNOWN: return "drop_unknown";
    case UNPIN_DROP_HALF_OPEN: return "drop_half_open";
    case UNPIN_DROP_STRADDLE: return "drop_straddle";
    case UNPIN_DROP_INTERNAL: return "drop_internal";
  }
  return "";
}

}  // namespace unpin
