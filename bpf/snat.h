/* SPDX-License-Identifier: GPL-2.0 */
/* A source address and port for a new connection. A pair is taken while its s2c key stands in `flows` or `half_open`,
 * closed connections included: so a port rests for the quiet time before the same backend sees it again. */
#pragma once

#include "bpf/events.h"
#include "bpf/flow.h"
#include "bpf/verifier.h"

enum { SNAT_ATTEMPTS = 128 };

/* A handshake that has not gone on for so long loses its s2c key to a connection that finds no other. */
static const __u64 ABANDONED_NS = 3000000000ULL;

struct snat_search {
  struct unpin_flow_key s2c; /* the backend's end is filled in */
  const struct unpin_controls *settings;
  const struct unpin_half_open *entry; /* inserted under the key found */
  struct unpin_flow_key abandoned;     /* the oldest such key met, if oldest_ns */
  __u64 oldest_ns;
  __u32 next;
  __u32 found;
};

static __always_inline int is_abandoned(const struct unpin_half_open *half, __u64 now) {
  return half->created_ns + ABANDONED_NS < now;
}

/* The key at hand is taken by a handshake: is it the one to give up? */
static __always_inline void note_abandoned(struct snat_search *search) {
  const struct unpin_half_open *taken = bpf_map_lookup_elem(&half_open, &search->s2c);

  if (!taken || !is_abandoned(taken, search->entry->created_ns)) return;
  if (search->oldest_ns && search->oldest_ns <= taken->created_ns) return;
  search->abandoned = search->s2c;
  search->oldest_ns = taken->created_ns;
}

static long try_snat_pair(__u32 index, struct snat_search *search) {
  const struct unpin_controls *settings = search->settings;
  const __u32 count = settings->snat_count;
  const __u32 ports = settings->snat_port_max - settings->snat_port_min + 1;
  __u32 pair, port;

  if (!count || count > UNPIN_MAX_SNAT_ADDRESSES || !ports || index >= count * ports) return 1;
  pair = search->next++ % (count * ports);
  port = settings->snat_port_min + pair / count;
  search->s2c.destination =
      settings->snat_addresses[masked(pair % count, UNPIN_MAX_SNAT_ADDRESSES - 1)];
  search->s2c.destination_port = bpf_htons(port);
  if (find_flow(&search->s2c)) return 0;
  if (bpf_map_update_elem(&half_open, &search->s2c, search->entry, BPF_NOEXIST)) {
    note_abandoned(search);
    return 0;
  }
  search->found = 1;
  return 1;
}

/* Completes `s2c` with a free pair and inserts `entry` under it; if none of those tried is free, with that of the oldest
 * abandoned handshake. False: all are taken. */
static __always_inline int allocate_snat(struct unpin_flow_key *s2c,
                                         const struct unpin_half_open *entry) {
  struct snat_search search = {
      .s2c = *s2c,
      .settings = find_controls(),
      .entry = entry,
      .next = bpf_get_prandom_u32() >> 1,
  };

  if (!search.settings) return 0;
  bpf_loop(SNAT_ATTEMPTS, try_snat_pair, &search, 0);
  *s2c = search.found ? search.s2c : search.abandoned;
  if (search.found || !search.oldest_ns) return search.found;
  return !bpf_map_update_elem(&half_open, s2c, entry, BPF_ANY);
}
