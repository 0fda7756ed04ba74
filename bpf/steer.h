/* SPDX-License-Identifier: GPL-2.0 */
/* New connection to backend: its client's pin if there is one, else Maglev. Neither offers a backend that is not up or has
 * no room; a suspect one comes last. */
#pragma once

#include "bpf/packet.h"
#include "bpf/pins.h"
#include "bpf/standing.h"

struct steered {
  const struct unpin_backend *backend; /* NULL: none can take it, see refusal */
  enum unpin_verdict refusal;
  __u32 id;
  __u32 move; /* the move whose pin decided; 0: Maglev did */
  int is_suspect;
};

enum { STEER_ATTEMPTS = 8 }; /* slots tried before a suspect backend is taken, or none */

static __always_inline const struct unpin_backend *serving_backend(__u32 id) {
  const struct unpin_backend *backend = bpf_map_lookup_elem(&backends, &id);

  return backend && backend->state == UNPIN_BACKEND_SERVING ? backend : NULL;
}

/* MurmurHash3's finaliser: every input bit reaches every output bit. */
static __always_inline __u32 mix(__u64 value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ value >> 33;
}

/* The same on every gateway, so that they agree (Maglev paper, section 3.2). */
static __always_inline __u32 flow_hash(const struct unpin_flow_key *key, int source_only) {
  const __u64 ports = source_only ? 0 : (__u64)key->source_port << 16 | key->destination_port;

  return mix(((__u64)key->source << 32 | key->destination) ^ ports * 0x9e3779b97f4a7c15ULL);
}

/* Takes the backend unless it cannot serve, or is suspect and not the first such. */
static __always_inline void consider_backend(__u32 service, __u32 id, struct steered *steered) {
  const struct unpin_backend *backend = serving_backend(id);
  const struct unpin_standing *standing = find_standing(id);
  int suspect;

  if (!backend || backend->service != service) return;
  if (is_full(standing)) {
    steered->refusal = UNPIN_REPLY_RESET_BACKENDS_FULL;
    return;
  }
  suspect = is_suspect(standing, bpf_ktime_get_ns());
  if (suspect && steered->backend) return;
  steered->backend = backend;
  steered->id = id;
  steered->is_suspect = suspect;
}

static __always_inline void steer_by_maglev(const struct unpin_service *service, const struct unpin_flow_key *key,
                                            struct steered *steered) {
  __u32 service_id = service->id;
  void *table = bpf_map_lookup_elem(&maglev_tables, &service_id);
  const __u32 slots = service->slots; /* read here: Linux 6.1 refuses the loop that clang makes of it otherwise */
  __u32 hash, slot, i;
  const __u32 *id;

  if (!table || !slots) return;
  hash = flow_hash(key, service->flags & UNPIN_SERVICE_SOURCE_HASH);
  for (i = 0; i < STEER_ATTEMPTS; i++) {
    slot = hash % slots;
    id = bpf_map_lookup_elem(table, &slot);
    if (id) consider_backend(service->id, *id, steered);
    if (steered->backend && !steered->is_suspect) return;
    hash = mix(hash); /* the same way for the same flow, on every gateway */
  }
}

static __always_inline void steer(const struct unpin_service *service, const struct unpin_flow_key *key,
                                  struct steered *steered) {
  __u32 pinned = 0;

  steered->refusal = UNPIN_REPLY_RESET_NO_BACKEND;
  steered->move = reserve_pin(service->id, key->source, bpf_ktime_get_ns(), &pinned);
  if (steered->move) {
    consider_backend(service->id, pinned, steered);
    if (steered->backend && !steered->is_suspect) return;
    steered->move = 0; /* that backend has gone down or away since */
  }
  steer_by_maglev(service, key, steered);
}
