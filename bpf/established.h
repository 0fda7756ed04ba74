/* SPDX-License-Identifier: GPL-2.0 */
/* A packet of an established connection: follow it, translate it, rewrite it. */
#pragma once

#include "bpf/reset.h"
#include "bpf/rewrite.h"
#include "bpf/track.h"
#include "bpf/translate.h"

static __always_inline enum unpin_verdict forward_s2c(struct xdp_md *ctx, struct packet *pkt,
                                                      struct unpin_flow *flow,
                                                      struct unpin_scratch *room, __u64 *added) {
  struct tracked tracked = {};
  enum unpin_verdict verdict = UNPIN_FORWARD_S2C;

  track_s2c(ctx, pkt, flow, room, &tracked);
  if (tracked.has_committed) report_connection(flow, &pkt->key, UNPIN_EVENT_COMMITTED, 0);
  if (!splice_is_on(&tracked.splice)) return verdict;
  if (splice_must_cut(&tracked.splice, pkt->seq, segment_end(pkt))) {
    if (!cut_packet(ctx, pkt, tracked.splice.boundary)) return UNPIN_DROP_STRADDLE;
    verdict = UNPIN_FORWARD_TRIMMED;
  } else {
    verdict = UNPIN_FORWARD_SPLICED;
  }
  *added = translate_s2c(ctx, pkt, &tracked.splice);
  return verdict;
}

static __always_inline enum unpin_verdict forward_c2s(struct xdp_md *ctx, struct packet *pkt,
                                                      struct unpin_flow *flow,
                                                      struct unpin_scratch *room, __u64 *added) {
  struct tracked tracked = {};

  track_c2s(ctx, pkt, flow, room, &tracked);
  if (!splice_is_on(&tracked.splice)) return UNPIN_FORWARD_C2S;
  *added = translate_c2s(ctx, pkt, flow, &tracked.splice);
  return UNPIN_FORWARD_SPLICED;
}

/* Something about routes or neighbours has changed: asks again. What is known stays if the kernel knows nothing now. */
static __always_inline void refresh_next_hop(struct xdp_md *ctx, struct unpin_flow *flow) {
  const struct unpin_controls *settings = find_controls();
  struct unpin_rewrite rewrite;

  if (!settings || settings->route_generation == flow->rewrite.route_generation) return;
  rewrite = flow->rewrite;
  rewrite.route_generation = settings->route_generation;
  look_up_next_hop(ctx, &rewrite);
  flow->rewrite = rewrite;
}

/* A connection that has ended for us, but not yet for whoever sent this. */
static __always_inline enum unpin_verdict refuse_packet(struct xdp_md *ctx, const struct packet *pkt,
                                                        const struct unpin_flow *flow) {
  if (flow->flags & UNPIN_FLOW_ORPHAN) return UNPIN_DROP_UNKNOWN;
  return answer_with_reset(ctx, pkt, UNPIN_REPLY_RESET_ABANDONED);
}

static __noinline enum unpin_verdict forward_established(struct xdp_md *ctx, struct packet *pkt,
                                                         struct unpin_flow *flow) {
  struct unpin_scratch *room = find_scratch();
  enum unpin_verdict verdict, failure;
  __u64 added = 0;

  if (!room) return UNPIN_DROP_INTERNAL;
  if (pkt->is_first_fragment)
    return UNPIN_DROP_FRAGMENT; /* the others cannot follow it: they name no ports */
  if (flow->flags & (UNPIN_FLOW_ORPHAN | UNPIN_FLOW_ABANDONED)) return refuse_packet(ctx, pkt, flow);
  refresh_next_hop(ctx, flow);
  touch_flow(flow, pkt);
  verdict = flow->direction == UNPIN_S2C ? forward_s2c(ctx, pkt, flow, room, &added)
                                         : forward_c2s(ctx, pkt, flow, room, &added);
  if (pkt->flags & (TCP_FIN | TCP_RST)) note_closing(flow, pkt);
  if (verdict == UNPIN_DROP_STRADDLE) return verdict;
  failure = rewrite_packet(ctx, pkt, &flow->rewrite, added);
  return failure ? failure : verdict;
}

/* The packet that completed the handshake. */
static __always_inline enum unpin_verdict forward_opening(struct xdp_md *ctx, struct packet *pkt,
                                                          struct unpin_flow *flow) {
  const enum unpin_verdict verdict = forward_established(ctx, pkt, flow);

  return verdict == UNPIN_FORWARD_C2S ? UNPIN_FORWARD_OPENED : verdict;
}
