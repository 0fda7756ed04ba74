/* SPDX-License-Identifier: GPL-2.0 */
/* How a backend stands just now: has it broken or refused a connection, has it room for another? What the agent decides
 * (SERVING or not) comes milliseconds later; clients reconnect in less. */
#pragma once

#include "bpf/events.h"

enum { SUSPECT_NS = 1000000000 }; /* time for the agent to probe it */

static __always_inline struct unpin_standing *find_standing(__u32 backend) {
  return bpf_map_lookup_elem(&standings, &backend);
}

static __always_inline int is_suspect(const struct unpin_standing *standing, __u64 now) {
  return standing && standing->suspect_until_ns > now;
}

static __always_inline int is_full(const struct unpin_standing *standing) {
  return standing && standing->is_capped && !standing->room;
}

static __always_inline void take_room(__u32 backend) {
  struct unpin_standing *standing = find_standing(backend);

  if (standing && standing->is_capped && standing->room) __sync_fetch_and_add(&standing->room, -1);
}

/* Offered after all others for a while; the agent is told once. */
static __noinline void suspect_backend(__u32 service, __u32 backend) {
  struct unpin_event event = {.type = UNPIN_EVENT_SUSPECT, .service = service, .backend = backend};
  struct unpin_standing *standing = find_standing(backend);
  const __u64 now = bpf_ktime_get_ns();
  int is_news;

  if (!standing) return;
  is_news = !is_suspect(standing, now);
  standing->suspect_until_ns = now + SUSPECT_NS;
  if (is_news) emit_event(&event);
}
