/* SPDX-License-Identifier: GPL-2.0 */
/* Verdict to XDP action and counter: the only exit. Nothing else in bpf/ names an XDP_ constant. */
#pragma once

#include "bpf/maps.h"

/* `egress` is where a forwarded packet leaves; 0 for every other verdict. */
static __always_inline int xdp_action(const struct xdp_md *ctx, enum unpin_verdict verdict, __u32 egress) {
  if (verdict >= UNPIN_DROP_TTL) return XDP_DROP;
  if (verdict >= UNPIN_REPLY_RESET_UNKNOWN) return XDP_TX;
  if (verdict < UNPIN_FORWARD_C2S) return XDP_PASS;
  return egress == ctx->ingress_ifindex ? XDP_TX : (int)bpf_redirect(egress, 0);
}

static __always_inline int conclude(const struct xdp_md *ctx, enum unpin_verdict verdict, __u32 egress) {
  __u32 key = verdict;
  __u64 *count = bpf_map_lookup_elem(&verdict_counts, &key);

  if (count) (*count)++;
  return xdp_action(ctx, verdict, egress);
}
