// SPDX-License-Identifier: Apache-2.0
// What userspace tells the wrappers (cost.bpf.c).
#pragma once

#include <linux/types.h>

struct cost_head {
  __u64 words[8];
  __u16 tail;
};

/* One row's packets. Userspace writes it before a round and reads back where it stands. */
struct cost_setup {
  struct cost_head heads[3]; /* in turn, for wrap_handshake; else the first */
  __u32 frame;               /* its length */
  __u32 first_address;       /* of flow 0, in host order */
  __u32 flow_mask;           /* flows - 1; they are a power of two */
  __u32 flow;                /* the one whose turn it is */
  __u32 seq;                 /* of this visit to each flow */
  __u32 seq_step;            /* from one visit to the next */
  __u32 phase;
  __u8 varies_source; /* else the destination */
};
