/* SPDX-License-Identifier: GPL-2.0 */
/* Takes one packet into its flow's state under the flow's lock: where the frames stand, what was seen, and, for an
 * armed connection, the commit of a splice. Headers are read on a copy without the lock (helpers are illegal under it)
 * and accepted if nobody changed the state meanwhile. */
#pragma once

#include "bpf/capture.h"
#include "bpf/flow.h"
#include "bpf/follow.h"
#include "bpf/splice.h"
#include "bpf/tcp_options.h"

/* What came of it. */
struct tracked {
  struct unpin_splice splice;  /* as it stands after this packet */
  __u32 epoch;                 /* of the gap, if must_capture */
  __u8 must_capture;
  __u8 has_committed;
};

/* A packet held a header and was not seen, or came too early: from here on the agent follows. */
static __always_inline void fall_behind(struct unpin_flow *flow) {
  struct unpin_follower *f = &flow->follower;

  f->generation++;
  f->epoch = f->generation ? f->generation : 1;
  flow->capture_budget = UNPIN_CAPTURES_PER_GAP;
}

static __always_inline void plan_capture(struct unpin_flow *flow, struct unpin_scratch *room,
                                         struct tracked *tracked) {
  if (!flow->capture_budget) {
    flow->follower.flags |= UNPIN_FOLLOWER_LOST;
    flow->follower.generation++;
    return;
  }
  flow->capture_budget--;
  room->gap = flow->follower;
  tracked->epoch = flow->follower.epoch;
  tracked->must_capture = 1;
}

/* Called under the lock. True if the walk has become the flow's state. */
static __always_inline int accept_payload(struct unpin_flow *flow, struct unpin_scratch *room, int walked, __u32 end,
                                          struct tracked *tracked) {
  const struct unpin_walk *walk = &room->walk;
  struct unpin_follower *f = &flow->follower;
  const __u32 highest = f->highest_seen;
  int accepted = 0;

  if (http2_follows(f) && seq_before(http2_need(f), end)) {
    if (walked && !f->epoch && f->generation + 1 == walk->follower.generation) {
      *f = walk->follower;
      f->highest_seen = highest;
      accepted = 1;
    } else {
      if (!f->epoch) fall_behind(flow);
      plan_capture(flow, room, tracked);
    }
  }
  if (seq_before(highest, end)) f->highest_seen = end;
  return accepted;
}

/* Called under the s2c lock. `highest`: what had been seen before this packet. */
static __always_inline int try_commit(struct unpin_flow *s2c, struct unpin_flow *c2s, const struct packet *pkt,
                                      const struct unpin_walk *walk, int accepted, __u32 highest) {
  struct unpin_follower *f = &s2c->follower;

  if (!splice_is_armed(&s2c->splice) || s2c->flags || c2s->flags) return 0;
  if (pkt->flags & (TCP_FIN | TCP_RST | TCP_SYN)) return 0;
  if (http2_at_boundary(f) && f->next_header == f->highest_seen) {
    commit_splice(s2c, c2s, f->next_header);
    return 1;
  }
  if (s2c->splice.state != UNPIN_SPLICE_ARMED_TRIM || !accepted || !walk->has_cut) return 0;
  if (seq_before(walk->cut, highest)) return 0; /* bytes beyond it have reached the client untranslated */
  *f = walk->at_cut; /* the server sends the rest again */
  f->highest_seen = walk->cut;
  commit_splice(s2c, c2s, walk->cut);
  return 1;
}

/* Does this packet hold bytes the follower waits for, in order? */
static __always_inline int can_walk(const struct unpin_follower *f, const struct packet *pkt) {
  return http2_follows(f) && !f->epoch && seq_before(http2_need(f), payload_end(pkt)) &&
         !seq_before(http2_need(f), pkt->seq);
}

/* Reads the headers in the packet on a copy. False if there is nothing to read, or nothing that can be. */
static __always_inline int walk_packet(struct xdp_md *ctx, const struct packet *pkt, struct unpin_flow *flow,
                                       struct unpin_walk *walk) {
  if (!pkt->payload_length || !can_walk(&flow->follower, pkt)) return 0; /* a glance: most packets hold no header */
  bpf_spin_lock(&flow->lock);
  walk->follower = flow->follower;
  walk->want_cut = flow->splice.state == UNPIN_SPLICE_ARMED_TRIM;
  bpf_spin_unlock(&flow->lock);
  if (!can_walk(&walk->follower, pkt)) return 0;
  walk->sequence = pkt->seq;
  walk->end = payload_end(pkt);
  walk->payload_offset = pkt->payload_offset;
  walk->has_cut = 0;
  walk->follower.generation++;
  follow_packet(ctx);
  return 1;
}

static __always_inline void deliver_capture(struct xdp_md *ctx, const struct packet *pkt, struct unpin_flow *flow,
                                            const struct tracked *tracked) {
  if (!tracked->must_capture || capture_payload(ctx, pkt)) return;
  bpf_spin_lock(&flow->lock);
  if (flow->follower.epoch == tracked->epoch) {
    flow->follower.flags |= UNPIN_FOLLOWER_LOST;
    flow->follower.generation++;
  }
  bpf_spin_unlock(&flow->lock);
}

/* Is this the newest header so far? A packet that was overtaken must not bring an old timestamp back: a GOAWAY that carries
 * it would be thrown away (PAWS, RFC 7323 section 5). A RST has none, and may acknowledge nothing. */
static __always_inline int is_newest(const struct packet *pkt, const struct unpin_tcp_state *tcp,
                                     const struct unpin_tcp_state *known) {
  if ((pkt->flags & (TCP_ACK | TCP_RST)) != TCP_ACK) return 0;
  if (tcp->ack != known->ack) return seq_before(known->ack, tcp->ack);
  return !tcp->has_timestamp || !known->has_timestamp || !seq_before(tcp->tsval, known->tsval);
}

static __always_inline void track_s2c(struct xdp_md *ctx, const struct packet *pkt, struct unpin_flow *flow,
                                      struct unpin_scratch *room, struct tracked *tracked) {
  struct unpin_flow *c2s = splice_is_armed(&flow->splice) ? find_flow(&flow->reverse) : NULL;
  const int walked = walk_packet(ctx, pkt, flow, &room->walk);
  struct unpin_tcp_state tcp = {};
  int accepted = 0;
  __u32 highest;

  read_tcp_state(ctx, pkt, &tcp);
  bpf_spin_lock(&flow->lock);
  highest = flow->follower.highest_seen;
  if (pkt->payload_length) accepted = accept_payload(flow, room, walked, payload_end(pkt), tracked);
  if (is_newest(pkt, &tcp, &flow->tcp)) flow->tcp = tcp;
  if (c2s) tracked->has_committed = try_commit(flow, c2s, pkt, &room->walk, accepted, highest);
  splice_age(&flow->splice, pkt->seq);
  tracked->splice = flow->splice;
  bpf_spin_unlock(&flow->lock);
  deliver_capture(ctx, pkt, flow, tracked);
}

static __always_inline void track_c2s(struct xdp_md *ctx, const struct packet *pkt, struct unpin_flow *flow,
                                      struct unpin_scratch *room, struct tracked *tracked) {
  int walked;

  if (pkt->payload_length && http2_follows(&flow->follower)) {
    walked = walk_packet(ctx, pkt, flow, &room->walk);
    bpf_spin_lock(&flow->lock);
    accept_payload(flow, room, walked, payload_end(pkt), tracked);
    bpf_spin_unlock(&flow->lock);
    deliver_capture(ctx, pkt, flow, tracked);
  }
  tracked->splice = read_splice(flow);
}
