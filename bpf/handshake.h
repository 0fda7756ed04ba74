/* SPDX-License-Identifier: GPL-2.0 */
/* From SYN to established. Until the client's ACK proves that it exists, a connection lives in `half_open` only, so that
 * a flood of SYNs evicts nothing but its like. */
#pragma once

#include "bpf/admission.h"
#include "bpf/flow.h"
#include "bpf/http2.h"
#include "bpf/reset.h"
#include "bpf/rewrite.h"
#include "bpf/service.h"
#include "bpf/snat.h"
#include "bpf/steer.h"

static __always_inline struct unpin_half_open *find_half_open(const struct unpin_flow_key *key) {
  return bpf_map_lookup_elem(&half_open, key);
}

static __always_inline int same_key(const struct unpin_flow_key *a,
                                    const struct unpin_flow_key *b) {
  return a->source == b->source && a->destination == b->destination &&
         a->source_port == b->source_port && a->destination_port == b->destination_port;
}

/* The other direction of `half`, which stands under `key`. NULL if it was evicted: its key may be another's by now. */
static __always_inline struct unpin_half_open *other_half(const struct unpin_half_open *half,
                                                          const struct unpin_flow_key *key) {
  struct unpin_half_open *other = find_half_open(&half->reverse);

  return other && same_key(&other->reverse, key) ? other : NULL;
}

static __always_inline void forget_half_open(const struct unpin_flow_key *key,
                                             const struct unpin_half_open *half) {
  const struct unpin_flow_key reverse = half->reverse; /* it lives in the entry that goes first */
  const int is_whole = other_half(half, key) != NULL;

  bpf_map_delete_elem(&half_open, key);
  if (is_whole) bpf_map_delete_elem(&half_open, &reverse);
}

static __always_inline enum unpin_verdict forward_half_open(struct xdp_md *ctx, struct packet *pkt,
                                                            const struct unpin_half_open *half,
                                                            enum unpin_verdict verdict) {
  const enum unpin_verdict failure = rewrite_packet(ctx, pkt, &half->rewrite, 0);

  return failure ? failure : verdict;
}

/* Finds the s2c key of the new connection and puts `entry` into half_open under it. False: others have it. Without SNAT
 * these are of the same client port, through another service. */
static __always_inline int claim_s2c_key(const struct unpin_service *service,
                                         struct unpin_flow_key *s2c,
                                         const struct unpin_half_open *entry) {
  const struct unpin_half_open *taken;

  if (service->flags & UNPIN_SERVICE_SNAT) return allocate_snat(s2c, entry);
  if (find_flow(s2c)) return 0;
  taken = find_half_open(s2c);
  if (!taken) return !bpf_map_update_elem(&half_open, s2c, entry, BPF_NOEXIST);
  if (!same_key(&taken->reverse, &entry->reverse) && !is_abandoned(taken, entry->created_ns))
    return 0;
  return !bpf_map_update_elem(&half_open, s2c, entry, BPF_ANY);
}

static __always_inline void fill_half_open(struct unpin_half_open *half, const struct packet *pkt,
                                           const struct steered *steered, __u32 service,
                                           __u8 direction) {
  __builtin_memset(half, 0, sizeof(*half));
  half->service = service;
  half->backend = steered->id;
  half->move = steered->move;
  half->client_isn = pkt->seq;
  half->direction = direction;
  half->data_in_syn = pkt->payload_length != 0;
  half->created_ns = bpf_ktime_get_ns();
}

static __always_inline void report_no_neighbor(__u32 service, __u32 backend) {
  struct unpin_event event = {
      .type = UNPIN_EVENT_NO_NEIGHBOR, .service = service, .backend = backend};

  emit_event(&event);
}

/* Computes both rewritings. False: no next hop towards the backend is known yet. */
static __always_inline int plan_connection(struct xdp_md *ctx, const struct packet *pkt,
                                           const struct unpin_flow_key *s2c,
                                           struct unpin_half_open *to_server,
                                           struct unpin_half_open *to_client) {
  const struct unpin_controls *settings = find_controls();
  const struct unpin_flow_key server_side = reversed(s2c), client_side = reversed(&pkt->key);

  to_server->reverse = *s2c;
  plan_rewrite(&to_server->rewrite, &pkt->key, &server_side);
  plan_rewrite(&to_client->rewrite, s2c, &client_side);
  if (settings) {
    to_server->rewrite.route_generation = settings->route_generation;
    to_client->rewrite.route_generation = settings->route_generation;
  }
  reverse_next_hop(ctx, &to_client->rewrite);
  look_up_next_hop(ctx, &to_client->rewrite);
  return look_up_next_hop(ctx, &to_server->rewrite);
}

/* A SYN to a service, of no connection we know. */
static __noinline enum unpin_verdict open_connection(struct xdp_md *ctx, struct packet *pkt,
                                                     const struct unpin_service *service) {
  struct unpin_scratch *room = find_scratch();
  struct steered steered = {};
  struct unpin_flow_key s2c;

  if (!room) return UNPIN_DROP_INTERNAL;
  if (!admit(service, bpf_ktime_get_ns())) return answer_with_reset(ctx, pkt, UNPIN_REPLY_RESET_OVER_RATE);
  steer(service, &pkt->key, &steered);
  if (!steered.backend) return answer_with_reset(ctx, pkt, steered.refusal);
  fill_half_open(&room->c2s_half, pkt, &steered, service->id, UNPIN_C2S);
  fill_half_open(&room->s2c_half, pkt, &steered, service->id, UNPIN_S2C);
  room->s2c_half.reverse = pkt->key;

  s2c = (struct unpin_flow_key){steered.backend->address, pkt->key.source, steered.backend->port,
                                pkt->key.source_port};
  if (!claim_s2c_key(service, &s2c, &room->s2c_half)) return UNPIN_DROP_NO_PORT;
  if (!plan_connection(ctx, pkt, &s2c, &room->c2s_half, &room->s2c_half)) {
    bpf_map_delete_elem(&half_open, &s2c);
    report_no_neighbor(service->id, steered.id);
    return UNPIN_DROP_NO_NEIGHBOR;
  }
  if (bpf_map_update_elem(&half_open, &s2c, &room->s2c_half, BPF_ANY) ||
      bpf_map_update_elem(&half_open, &pkt->key, &room->c2s_half, BPF_ANY))
    return UNPIN_DROP_INTERNAL;
  take_room(steered.id);
  return forward_half_open(ctx, pkt, &room->c2s_half, UNPIN_FORWARD_SYN);
}

/* The s2c half may have been evicted alone: builds it again from the other. False: another connection has its key. */
static __noinline int restore_s2c_half(struct xdp_md *ctx, const struct packet *pkt,
                                       struct unpin_half_open *c2s) {
  struct unpin_scratch *room = find_scratch();
  const struct unpin_flow_key client_side = reversed(&pkt->key);

  if (!room || find_flow(&c2s->reverse)) return 0;
  room->s2c_half = *c2s;
  room->s2c_half.direction = UNPIN_S2C;
  room->s2c_half.reverse = pkt->key;
  plan_rewrite(&room->s2c_half.rewrite, &c2s->reverse, &client_side);
  reverse_next_hop(ctx, &room->s2c_half.rewrite);
  look_up_next_hop(ctx, &room->s2c_half.rewrite);
  return !bpf_map_update_elem(&half_open, &c2s->reverse, &room->s2c_half, BPF_NOEXIST);
}

static __always_inline int is_whole(struct xdp_md *ctx, const struct packet *pkt,
                                    struct unpin_half_open *c2s) {
  return other_half(c2s, &pkt->key) || restore_s2c_half(ctx, pkt, c2s);
}

static __always_inline void fill_flow(struct unpin_flow *flow, const struct unpin_half_open *half,
                                      const struct unpin_half_open *c2s) {
  const __u32 isn = half->direction == UNPIN_C2S ? c2s->client_isn : c2s->server_isn;

  __builtin_memset(flow, 0, sizeof(*flow));
  flow->direction = half->direction;
  flow->rewrite = half->rewrite;
  flow->reverse = half->reverse;
  flow->service = half->service;
  flow->backend = half->backend;
  flow->tcp.ack = half->direction == UNPIN_C2S ? c2s->server_isn + 1 : c2s->client_isn + 1;
  flow->created_ns = bpf_ktime_get_ns();
  flow->last_seen_ns = bpf_ktime_get_coarse_ns();
  http2_start(&flow->follower, half->direction, isn + 1, bpf_get_prandom_u32());
  if (half->data_in_syn)
    flow->follower.protocol = UNPIN_PROTOCOL_OPAQUE; /* its first bytes were not followed */
}

/* The client has proved that it exists. False if the table is full. */
static __noinline int establish(const struct packet *pkt, struct unpin_half_open *c2s) {
  struct unpin_scratch *room = find_scratch();
  const struct unpin_half_open *s2c = find_half_open(&c2s->reverse);
  const struct unpin_flow_key s2c_key = c2s->reverse;
  const struct unpin_flow *flow;

  if (!room || !s2c) return 0;
  fill_flow(&room->c2s, c2s, c2s);
  fill_flow(&room->s2c, s2c, c2s);
  if (bpf_map_update_elem(&flows, &s2c_key, &room->s2c, BPF_NOEXIST)) return 0;
  if (bpf_map_update_elem(&flows, &pkt->key, &room->c2s, BPF_NOEXIST)) {
    bpf_map_delete_elem(&flows, &s2c_key);
    return 0;
  }
  if (c2s->move) take_pin(c2s->service, pkt->key.source, c2s->move);
  flow = find_flow(&pkt->key);
  if (flow) report_connection(flow, &pkt->key, UNPIN_EVENT_OPENED, c2s->move);
  return 1;
}

/* Mid-stream TCP to a service, of no connection we know: this gateway has replaced another, or lost its tables. */
static __always_inline enum unpin_verdict answer_unknown(struct xdp_md *ctx,
                                                         const struct packet *pkt) {
  const struct unpin_controls *settings = find_controls();

  if (settings && settings->unknown_tcp == UNPIN_UNKNOWN_DROP) return UNPIN_DROP_UNKNOWN;
  return answer_with_reset(ctx, pkt, UNPIN_REPLY_RESET_UNKNOWN);
}

static __always_inline enum unpin_verdict complete_handshake(struct xdp_md *ctx,
                                                             const struct packet *pkt,
                                                             struct unpin_half_open *half) {
  int established;

  if (!is_whole(ctx, pkt, half)) {
    forget_half_open(&pkt->key, half);
    return answer_unknown(ctx, pkt);
  }
  established = establish(pkt, half);
  forget_half_open(&pkt->key, half);
  return established ? UNPIN_CONTINUE : answer_with_reset(ctx, pkt, UNPIN_REPLY_RESET_TABLE_FULL);
}

static __always_inline enum unpin_verdict handshake_c2s(struct xdp_md *ctx, struct packet *pkt,
                                                        struct unpin_half_open *half) {
  if (pkt->flags & TCP_RST) {
    const enum unpin_verdict verdict = forward_half_open(ctx, pkt, half, UNPIN_FORWARD_C2S);

    forget_half_open(&pkt->key, half);
    return verdict;
  }
  if (pkt->flags & TCP_SYN) return forward_half_open(ctx, pkt, half, UNPIN_FORWARD_SYN_RETRY);
  /* With data in the SYN the server may have sent data too, and the client acknowledged some. */
  if (half->syn_ack_seen && (pkt->flags & TCP_ACK) &&
      (half->data_in_syn ? seq_before(half->server_isn, pkt->ack)
                         : pkt->ack == half->server_isn + 1))
    return complete_handshake(ctx, pkt, half);
  return UNPIN_DROP_HALF_OPEN;
}

static __always_inline enum unpin_verdict handshake_s2c(struct xdp_md *ctx, struct packet *pkt,
                                                        struct unpin_half_open *half) {
  struct unpin_half_open *c2s = other_half(half, &pkt->key);
  enum unpin_verdict verdict;

  if (!c2s) return UNPIN_DROP_HALF_OPEN;
  if ((pkt->flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)) {
    c2s->server_isn = pkt->seq;
    c2s->syn_ack_seen = 1;
    return forward_half_open(ctx, pkt, half, UNPIN_FORWARD_SYN_ACK);
  }
  verdict = forward_half_open(ctx, pkt, half, UNPIN_FORWARD_S2C);
  if (pkt->flags & TCP_RST) {
    suspect_backend(half->service, half->backend);
    forget_half_open(&pkt->key, half); /* refused: nobody holds the port */
  }
  return verdict;
}

/* May this SYN go on to the backend it was steered to before, from the same port? */
static __always_inline int keeps_backend(struct xdp_md *ctx, const struct packet *pkt,
                                         struct unpin_half_open *half) {
  return half->client_isn == pkt->seq && serving_backend(half->backend) && is_whole(ctx, pkt, half);
}

static __always_inline enum unpin_verdict shake_hands(struct xdp_md *ctx, struct packet *pkt) {
  struct unpin_half_open *half;
  const struct unpin_service *service;

  half = find_half_open(&pkt->key);
  if (half && half->direction == UNPIN_S2C) return handshake_s2c(ctx, pkt, half);
  if (half && ((pkt->flags & (TCP_SYN | TCP_ACK)) != TCP_SYN || keeps_backend(ctx, pkt, half)))
    return handshake_c2s(ctx, pkt, half);
  if (half) forget_half_open(&pkt->key, half); /* another connection from the same port */

  service = find_service(pkt);
  if (!service) return UNPIN_PASS_NO_SERVICE;
  if (pkt->is_first_fragment) return UNPIN_DROP_FRAGMENT;
  if ((pkt->flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_SYN)
    return open_connection(ctx, pkt, service);
  return answer_unknown(ctx, pkt);
}

/* A packet of no established connection. UNPIN_CONTINUE: it is one now. */
__noinline int handshake(struct xdp_md *ctx, struct packet *pkt) {
  struct packet own;
  int verdict;

  if (!pkt) return UNPIN_DROP_INTERNAL;
  own = *pkt; /* Linux 6.1 takes no map key from a global function's argument */
  verdict = shake_hands(ctx, &own);
  pkt->egress = own.egress;
  return verdict;
}
