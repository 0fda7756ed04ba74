/* SPDX-License-Identifier: GPL-2.0 */
/* What the agent asks of flows and pins, done under their own locks. Each program's frame is its argument struct. */
#include "bpf/flow.h"
#include "bpf/http2.h"
#include "bpf/pins.h"
#include "bpf/splice.h"

/* The argument struct, or NULL if the frame is too short for it. */
static __always_inline void *arguments(const struct xdp_md *ctx, __u32 size) {
  struct cursor cursor = frame_cursor(ctx, 0);

  return take(&cursor, size);
}

static __always_inline __u32 refuse_protocol(__u8 c2s, __u8 s2c) {
  const __u8 protocol = c2s > UNPIN_PROTOCOL_H2 ? c2s : s2c;

  if (protocol == UNPIN_PROTOCOL_TLS) return UNPIN_REFUSAL_TLS;
  if (protocol == UNPIN_PROTOCOL_HTTP1) return UNPIN_REFUSAL_HTTP1;
  if (protocol == UNPIN_PROTOCOL_OPAQUE) return UNPIN_REFUSAL_OPAQUE;
  return c2s == UNPIN_PROTOCOL_H2 && s2c == UNPIN_PROTOCOL_H2 ? UNPIN_REFUSAL_NONE : UNPIN_REFUSAL_UNDECIDED;
}

/* Why this connection cannot be moved. Called under the s2c lock. */
static __always_inline __u32 refuse_move(const struct unpin_flow *s2c, const struct unpin_flow *c2s, __u64 now,
                                         __u64 min_age) {
  const struct unpin_follower *f = &s2c->follower;
  __u32 refusal;

  if (s2c->flags | c2s->flags) return UNPIN_REFUSAL_CLOSING;
  refusal = refuse_protocol(c2s->follower.protocol, f->protocol);
  if (refusal) return refusal;
  if (splice_is_on(&s2c->splice)) return UNPIN_REFUSAL_ALREADY_MOVED;
  if (f->flags & UNPIN_FOLLOWER_GOAWAY_SEEN) return UNPIN_REFUSAL_SERVER_GOAWAY;
  if (f->flags & UNPIN_FOLLOWER_LOST) return UNPIN_REFUSAL_LOST;
  if (f->epoch) return UNPIN_REFUSAL_BEHIND;
  if (!f->streams_ended) return UNPIN_REFUSAL_NO_RESPONSE;
  return now - s2c->created_ns < min_age ? UNPIN_REFUSAL_TOO_YOUNG : UNPIN_REFUSAL_NONE;
}

/* Idle at a boundary: all that was seen has been followed. Called under the s2c lock. */
static __always_inline int is_idle_at_boundary(const struct unpin_flow *s2c) {
  return http2_at_boundary(&s2c->follower) && s2c->follower.next_header == s2c->follower.highest_seen;
}

SEC("xdp")
int arm_goaway(struct xdp_md *ctx) {
  struct unpin_arm_args *args = arguments(ctx, sizeof(*args));
  const __u64 now = bpf_ktime_get_ns();
  struct unpin_flow *s2c, *c2s = NULL;
  struct unpin_flow_key key;

  if (!args) return 0;
  key = args->s2c;
  args->refusal = UNPIN_REFUSAL_NOT_FOUND;
  s2c = find_flow(&key);
  if (s2c && s2c->direction == UNPIN_S2C && !(s2c->flags & UNPIN_FLOW_ORPHAN)) c2s = find_flow(&s2c->reverse);
  if (!c2s) return 0;

  bpf_spin_lock(&s2c->lock);
  args->refusal = refuse_move(s2c, c2s, now, args->min_age_ns);
  if (!args->refusal) {
    if (is_idle_at_boundary(s2c)) commit_splice(s2c, c2s, s2c->follower.next_header);
    else s2c->splice.state = args->allow_trim ? UNPIN_SPLICE_ARMED_TRIM : UNPIN_SPLICE_ARMED;
  }
  args->state = s2c->splice.state;
  args->boundary = s2c->splice.boundary;
  bpf_spin_unlock(&s2c->lock);
  return 0;
}

SEC("xdp")
int disarm_goaway(struct xdp_md *ctx) {
  struct unpin_arm_args *args = arguments(ctx, sizeof(*args));
  struct unpin_flow_key key;
  struct unpin_flow *s2c;

  if (!args) return 0;
  key = args->s2c;
  args->refusal = UNPIN_REFUSAL_NOT_FOUND;
  s2c = find_flow(&key);
  if (!s2c) return 0;

  bpf_spin_lock(&s2c->lock);
  if (splice_is_armed(&s2c->splice)) s2c->splice.state = UNPIN_SPLICE_NONE;
  args->refusal = UNPIN_REFUSAL_NONE;
  args->state = s2c->splice.state;
  args->boundary = s2c->splice.boundary;
  bpf_spin_unlock(&s2c->lock);
  return 0;
}

/* Packets of a client that missed this RST, or took it for an attack (RFC 5961), are answered with another. */
SEC("xdp")
int abandon_connection(struct xdp_md *ctx) {
  struct unpin_arm_args *args = arguments(ctx, sizeof(*args));
  struct unpin_flow *s2c, *c2s = NULL;
  struct unpin_flow_key key;

  if (!args) return 0;
  key = args->s2c;
  args->refusal = UNPIN_REFUSAL_NOT_FOUND;
  s2c = find_flow(&key);
  if (s2c && s2c->direction == UNPIN_S2C && !(s2c->flags & UNPIN_FLOW_ORPHAN)) c2s = find_flow(&s2c->reverse);
  if (!c2s) return 0;
  args->refusal = is_closed(s2c, c2s) ? UNPIN_REFUSAL_CLOSING : UNPIN_REFUSAL_NONE;
  s2c->flags |= UNPIN_FLOW_RST | UNPIN_FLOW_ABANDONED;
  c2s->flags |= UNPIN_FLOW_RST | UNPIN_FLOW_ABANDONED;
  if (!args->refusal) report_connection(s2c, &key, UNPIN_EVENT_CLOSED, 0);
  return 0;
}

/* Takes over what the agent has followed. Called under the flow's lock. */
static __always_inline __u32 take_over(struct unpin_flow *flow, const struct unpin_follower *followed, __u32 give_up) {
  struct unpin_follower *f = &flow->follower;
  const __u32 highest = f->highest_seen, generation = f->generation + 1;

  if (!f->epoch || f->epoch != followed->epoch) return UNPIN_RESTORE_STALE;
  if (give_up) {
    f->flags |= UNPIN_FOLLOWER_LOST;
    f->generation = generation;
    return UNPIN_RESTORE_DONE;
  }
  if (http2_follows(followed) && seq_before(http2_need(followed), highest)) return UNPIN_RESTORE_MISSING;
  *f = *followed;
  f->epoch = 0;
  f->highest_seen = highest;
  f->generation = generation;
  return UNPIN_RESTORE_DONE;
}

SEC("xdp")
int restore_follower(struct xdp_md *ctx) {
  struct unpin_restore_args *args = arguments(ctx, sizeof(*args));
  struct unpin_flow *flow, *c2s = NULL;
  struct unpin_follower followed;
  struct unpin_flow_key key;
  int has_committed = 0;

  if (!args) return 0;
  key = args->key;
  followed = args->follower;
  args->result = UNPIN_RESTORE_STALE;
  flow = find_flow(&key);
  if (!flow) return 0;
  if (flow->direction == UNPIN_S2C) c2s = find_flow(&flow->reverse);

  bpf_spin_lock(&flow->lock);
  args->result = take_over(flow, &followed, args->give_up);
  args->highest_seen = flow->follower.highest_seen;
  if (c2s && splice_is_armed(&flow->splice) && !flow->flags && !c2s->flags && is_idle_at_boundary(flow)) {
    commit_splice(flow, c2s, flow->follower.next_header);
    has_committed = 1;
  }
  bpf_spin_unlock(&flow->lock);
  if (has_committed) report_connection(flow, &key, UNPIN_EVENT_COMMITTED, 0);
  return 0;
}

/* An entry for the client; made here, so that the pins inside change only under its lock. */
static __always_inline struct unpin_client_pins *pins_of_client(const struct unpin_pin_key *key) {
  static const struct unpin_client_pins none;
  struct unpin_client_pins *of_client = bpf_map_lookup_elem(&pins, key);

  if (of_client) return of_client;
  bpf_map_update_elem(&pins, key, &none, BPF_NOEXIST);
  return bpf_map_lookup_elem(&pins, key);
}

SEC("xdp")
int add_pin(struct xdp_md *ctx) {
  struct unpin_add_pin_args *args = arguments(ctx, sizeof(*args));
  const __u64 now = bpf_ktime_get_ns();
  struct unpin_client_pins *of_client;
  struct unpin_pin_key key;
  __u32 full = 1, i;

  if (!args) return 0;
  key = args->key;
  args->full = 2;
  of_client = pins_of_client(&key);
  if (!of_client) return 0;

  bpf_spin_lock(&of_client->lock);
  for (i = 0; i < UNPIN_PINS_PER_CLIENT; i++) {
    struct unpin_pin *pin = &of_client->pins[i];

    if (pin->move && pin->expires_ns > now) continue;
    *pin = args->pin;
    pin->reserved_until_ns = 0;
    full = 0;
    break;
  }
  bpf_spin_unlock(&of_client->lock);
  args->full = full;
  return 0;
}

/* Frees the pin of args->pin.move; an entry without pins goes. Only the agent adds pins, so none is lost by that. */
SEC("xdp")
int remove_pin(struct xdp_md *ctx) {
  struct unpin_add_pin_args *args = arguments(ctx, sizeof(*args));
  struct unpin_client_pins *of_client;
  struct unpin_pin_key key;
  __u32 left = 0, i;

  if (!args) return 0;
  key = args->key;
  of_client = bpf_map_lookup_elem(&pins, &key);
  if (!of_client) return 0;

  bpf_spin_lock(&of_client->lock);
  for (i = 0; i < UNPIN_PINS_PER_CLIENT; i++) {
    if (of_client->pins[i].move == args->pin.move) of_client->pins[i].move = 0;
    left += of_client->pins[i].move != 0;
  }
  bpf_spin_unlock(&of_client->lock);
  if (!left) bpf_map_delete_elem(&pins, &key);
  return 0;
}

char LICENSE[] SEC("license") = "GPL";
