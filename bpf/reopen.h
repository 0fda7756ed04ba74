/* SPDX-License-Identifier: GPL-2.0 */
/* A SYN on a connection we know: is it a new one from the same port? An attacker's SYN must not end a live connection
 * (RFC 5961 section 4): it goes on to the backend, whose challenge ACK sorts it out. */
#pragma once

#include "bpf/flow.h"

static __always_inline int is_backend_there(__u32 id) {
  const struct unpin_backend *backend = bpf_map_lookup_elem(&backends, &id);

  return backend && (backend->state == UNPIN_BACKEND_SERVING || backend->state == UNPIN_BACKEND_DRAINING);
}

/* Removes the old connection; its SNAT port still rests for the quiet time. */
static __noinline void forget_connection(const struct unpin_flow_key *key, const struct unpin_flow *c2s) {
  const struct unpin_flow_key s2c_key = c2s->reverse;
  struct unpin_flow *s2c = find_flow(&s2c_key);

  bpf_map_delete_elem(&flows, key);
  if (!s2c) return;
  if (s2c_key.destination == key->source && s2c_key.destination_port == key->source_port)
    bpf_map_delete_elem(&flows, &s2c_key); /* no SNAT: the new connection needs the same key */
  else
    s2c->flags |= UNPIN_FLOW_FIN | UNPIN_FLOW_RST | UNPIN_FLOW_ORPHAN;
}

/* True if the packet begins a new connection; the old one is then forgotten. */
static __always_inline int is_new_connection(const struct packet *pkt, const struct unpin_flow *flow) {
  if ((pkt->flags & (TCP_SYN | TCP_ACK)) != TCP_SYN || flow->direction != UNPIN_C2S) return 0;
  if (is_backend_there(flow->backend) && !is_closed(flow, find_flow(&flow->reverse))) return 0;
  forget_connection(&pkt->key, flow);
  return 1;
}
