/* SPDX-License-Identifier: GPL-2.0 */
/* The flow table: find a direction, insert both, note their closing. */
#pragma once

#include "bpf/maps.h"
#include "bpf/packet.h"
#include "bpf/standing.h"

static __always_inline struct unpin_flow *find_flow(const struct unpin_flow_key *key) {
  return bpf_map_lookup_elem(&flows, key);
}

static __always_inline struct unpin_flow_key reversed(const struct unpin_flow_key *key) {
  return (struct unpin_flow_key){key->destination, key->source, key->destination_port, key->source_port};
}

/* Both splice words are 8-aligned and change in one store, so a reader on another CPU sees all or nothing. */
static __always_inline struct unpin_splice read_splice(const struct unpin_flow *flow) {
  union {
    __u64 word;
    struct unpin_splice splice;
  } both = {.word = *(const volatile __u64 *)&flow->splice};

  return both.splice;
}

static __always_inline void write_splice(struct unpin_flow *flow, struct unpin_splice splice) {
  const union {
    struct unpin_splice splice;
    __u64 word;
  } both = {.splice = splice};

  *(volatile __u64 *)&flow->splice = both.word;
}

/* Called under the s2c lock. From here on the GOAWAY is at [boundary, boundary + 17) of client space. */
static __always_inline void commit_splice(struct unpin_flow *s2c, struct unpin_flow *c2s, __u32 boundary) {
  const struct unpin_splice splice = {.boundary = boundary, .state = UNPIN_SPLICE_COMMITTED};

  write_splice(c2s, splice); /* before any number beyond the boundary can reach the client and come back */
  write_splice(s2c, splice);
}

/* RST either way, or FIN both ways. */
static __always_inline int is_closed(const struct unpin_flow *flow, const struct unpin_flow *reverse) {
  const __u8 either = flow->flags | (reverse ? reverse->flags : UNPIN_FLOW_FIN);
  const __u8 both = flow->flags & (reverse ? reverse->flags : UNPIN_FLOW_FIN);

  return (either & UNPIN_FLOW_RST) || (both & UNPIN_FLOW_FIN);
}

static __noinline void report_connection(const struct unpin_flow *flow, const struct unpin_flow_key *key, __u32 type,
                                         __u32 move) {
  struct unpin_event event = {
      .type = type,
      .service = flow->service,
      .backend = flow->backend,
      .move = move,
      .sequence = flow->splice.boundary,
      .s2c = flow->direction == UNPIN_S2C ? *key : flow->reverse,
      .c2s = flow->direction == UNPIN_C2S ? *key : flow->reverse,
  };

  emit_event(&event);
}

/* An HTTP/2 server that means to go says GOAWAY first (RFC 9113 section 6.8); one whose process has died does not. Once we
 * have said it in its place, the end of the connection tells nothing. */
static __always_inline int is_broken_off(const struct unpin_flow *flow, const struct unpin_flow *reverse) {
  const struct unpin_follower *f = &flow->follower;

  return flow->direction == UNPIN_S2C && !flow->flags && reverse && !reverse->flags &&
         f->protocol == UNPIN_PROTOCOL_H2 && !f->epoch && flow->splice.state < UNPIN_SPLICE_COMMITTED &&
         !(f->flags & (UNPIN_FOLLOWER_GOAWAY_SEEN | UNPIN_FOLLOWER_LOST));
}

/* Remembers FIN and RST; the connection stays for its quiet time. To be called once the packet has been followed. */
static inline __noinline void note_closing(struct unpin_flow *flow, const struct packet *pkt) {
  const __u8 news = (pkt->flags & TCP_FIN ? UNPIN_FLOW_FIN : 0) | (pkt->flags & TCP_RST ? UNPIN_FLOW_RST : 0);
  const struct unpin_flow *reverse;
  int was_closed;

  if (!(news & ~flow->flags)) return;
  reverse = find_flow(&flow->reverse);
  was_closed = is_closed(flow, reverse);
  if (is_broken_off(flow, reverse)) suspect_backend(flow->service, flow->backend);
  flow->flags |= news;
  if (!was_closed && is_closed(flow, reverse)) report_connection(flow, &pkt->key, UNPIN_EVENT_CLOSED, 0);
}

static __always_inline void touch_flow(struct unpin_flow *flow, const struct packet *pkt) {
  flow->last_seen_ns = bpf_ktime_get_coarse_ns();
  if (pkt->payload_length)
    flow->bytes += pkt->payload_length; /* not on the line that a pure ACK needs */
}
