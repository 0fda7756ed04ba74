/* SPDX-License-Identifier: GPL-2.0 */
/* Where a rewritten packet leaves and to whom. The kernel's routes and neighbours are the one source of truth: they are
 * asked when a connection is made and again when the agent says that something changed. */
#pragma once

#include "bpf/maps.h"
#include "bpf/packet.h"

enum { AF_INET_FAMILY = 2 };

/* Fills the L2 part of `rewrite` for its destination. Unchanged, and false, if there is no route or no neighbour yet. */
static __noinline int look_up_next_hop(struct xdp_md *ctx, struct unpin_rewrite *rewrite) {
  struct bpf_fib_lookup fib = {
      .family = AF_INET_FAMILY,
      .l4_protocol = IPPROTO_TCP,
      .ipv4_src = rewrite->source,
      .ipv4_dst = rewrite->destination,
      .ifindex = ctx->ingress_ifindex,
  };

  if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS) return 0;
  __builtin_memcpy(rewrite->destination_mac, fib.dmac, ETH_ALEN);
  __builtin_memcpy(rewrite->source_mac, fib.smac, ETH_ALEN);
  rewrite->egress_ifindex = fib.ifindex;
  return 1;
}

/* The way back to where this packet came from: right for a neighbour, good enough until the kernel knows better. */
static __always_inline void reverse_next_hop(const struct xdp_md *ctx, struct unpin_rewrite *rewrite) {
  struct cursor cursor = frame_cursor(ctx, 0);
  const struct ethhdr *eth = take(&cursor, sizeof(*eth));

  if (!eth) return;
  __builtin_memcpy(rewrite->destination_mac, eth->h_source, ETH_ALEN);
  __builtin_memcpy(rewrite->source_mac, eth->h_dest, ETH_ALEN);
  rewrite->egress_ifindex = ctx->ingress_ifindex;
}
