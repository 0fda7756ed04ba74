/* SPDX-License-Identifier: GPL-2.0 */
/* May a service take one more new connection now? */
#pragma once

#include "bpf/maps.h"

enum { ADMISSION_BURST_NS = 100000000 }; /* connections of so long a time may come at once */

/* The virtual scheduling form of the generic cell rate algorithm (ITU-T I.371 annex A). Two CPUs at the same instant may
 * count one connection instead of two. */
static __always_inline int admit(const struct unpin_service *service, __u64 now) {
  __u32 id = service->id;
  __u64 *due;

  if (!service->new_per_second) return 1;
  due = bpf_map_lookup_elem(&admissions, &id);
  if (!due) return 1;
  if (*due > now + ADMISSION_BURST_NS) return 0;
  *due = (*due > now ? *due : now) + 1000000000 / service->new_per_second;
  return 1;
}
