/* SPDX-License-Identifier: GPL-2.0 */
/* Pins: the next connections of a client to a service go where a move has planned. A pin is reserved by the SYN it
 * steers and taken when that handshake completes, so that a lost SYN does not use it up. */
#pragma once

#include "bpf/maps.h"

enum { PIN_RESERVED_NS = 1000000000 }; /* a client's first SYN retransmission is due after 1 s (RFC 6298) */

/* Reserves the first usable pin. Returns its move (0: none) and sets `backend`. */
static inline __noinline __u32 reserve_pin(__u32 service, __be32 client, __u64 now, __u32 *backend) {
  struct unpin_pin_key key = {.service = service, .client = client};
  struct unpin_client_pins *of_client = bpf_map_lookup_elem(&pins, &key);
  __u32 move = 0, i;

  if (!of_client) return 0;
  bpf_spin_lock(&of_client->lock);
  for (i = 0; i < UNPIN_PINS_PER_CLIENT; i++) {
    struct unpin_pin *pin = &of_client->pins[i];

    if (!pin->move || pin->expires_ns < now || pin->reserved_until_ns > now) continue;
    pin->reserved_until_ns = now + PIN_RESERVED_NS;
    *backend = pin->backend;
    move = pin->move;
    break;
  }
  bpf_spin_unlock(&of_client->lock);
  return move;
}

/* The connection has landed: frees the pin's slot. */
static inline __noinline int take_pin(__u32 service, __be32 client, __u32 move) {
  struct unpin_pin_key key = {.service = service, .client = client};
  struct unpin_client_pins *of_client = bpf_map_lookup_elem(&pins, &key);
  __u32 i;

  if (!of_client) return 0;
  bpf_spin_lock(&of_client->lock);
  for (i = 0; i < UNPIN_PINS_PER_CLIENT; i++)
    if (of_client->pins[i].move == move) of_client->pins[i].move = 0;
  bpf_spin_unlock(&of_client->lock);
  return 0;
}
