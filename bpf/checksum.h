/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Internet checksums by difference (RFC 1624). Sums are of 16 bit words as they lie in memory. Pure. */
#pragma once

#include "bpf/abi.h"

static inline __u16 checksum_fold(__u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (__u16)((sum & 0xffff) + (sum >> 16));
}

/* What replacing a word by another adds to a sum. */
static inline __u64 checksum_replace32(__u32 before, __u32 after) {
  return (__u64)(__u32)~before + after;
}

static inline __u64 checksum_replace16(__u16 before, __u16 after) {
  return (__u64)(__u16)~before + after;
}

/* The checksum field after `added` (any sum of the above) went into what it covers. */
static inline __u16 checksum_update(__u16 check, __u64 added) {
  return (__u16)~checksum_fold((__u16)~check + added);
}
