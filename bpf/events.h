/* SPDX-License-Identifier: GPL-2.0 */
/* Tells the agent what happened. A full ring loses events: the truth is in the tables. */
#pragma once

#include "bpf/maps.h"

static __always_inline struct unpin_controls *find_controls(void) {
  __u32 zero = 0;

  return bpf_map_lookup_elem(&controls, &zero);
}

/* `event->time_ns` is filled in here. */
__noinline int emit_event(struct unpin_event *event) {
  const struct unpin_controls *settings = find_controls();

  if (!settings || !event || !(settings->event_mask & 1u << (event->type & 31))) return 0;
  event->time_ns = bpf_ktime_get_ns();
  return bpf_ringbuf_output(&events, event, sizeof(*event), 0);
}
