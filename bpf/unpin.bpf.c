/* SPDX-License-Identifier: GPL-2.0 */
/* A packet's whole life, top to bottom. Each line is one stage in one file. */
#include "bpf/established.h"
#include "bpf/handshake.h"
#include "bpf/packet.h"
#include "bpf/reopen.h"
#include "bpf/verdict.h"

static __always_inline enum unpin_verdict process(struct xdp_md *ctx, struct packet *pkt) {
  enum unpin_verdict verdict = parse_packet(ctx, pkt);
  struct unpin_flow *flow;

  if (verdict != UNPIN_CONTINUE) return verdict;
  if (is_transit(pkt)) return UNPIN_PASS_NO_SERVICE;

  flow = find_flow(&pkt->key);
  if (flow && !is_new_connection(pkt, flow)) return forward_established(ctx, pkt, flow);

  verdict = handshake(ctx, pkt);
  if (verdict != UNPIN_CONTINUE) return verdict;

  flow = find_flow(&pkt->key);
  return flow ? forward_opening(ctx, pkt, flow) : UNPIN_DROP_INTERNAL;
}

SEC("xdp")
int unpin_ingress(struct xdp_md *ctx) {
  struct packet pkt = {};
  const enum unpin_verdict verdict = process(ctx, &pkt);

  return conclude(ctx, verdict, pkt.egress);
}

char LICENSE[] SEC("license") = "GPL";
