/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Shared by impair.bpf.c and impair.cc. */
#pragma once

#include <linux/types.h>

struct impair_direction {
  __u32 loss_permille;
  __u32 late_permille;
  __u32 block_acks; /* lose every TCP packet without payload, SYN, FIN or RST */
};

struct impair_counts {
  __u64 packets; /* TCP, lost and late ones included, blocked ones not */
  __u64 lost;
  __u64 late;
  __u64 blocked;
};
