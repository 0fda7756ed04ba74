/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Could an address and port be a service's or a backend's? One bit answers "surely not", so that what merely passes the
 * gateway costs no lookup and no cache miss. Bits are set before the service or backend is made and never cleared: its
 * connections outlive it. Pure. */
#pragma once

#include "bpf/abi.h"

enum { UNPIN_ENDPOINT_WORDS = 1024 }; /* of 64 bits: as many as endpoint_bit() tells apart */

struct unpin_endpoint_filter {
  __u64 words[UNPIN_ENDPOINT_WORDS];
};
static_assert(sizeof(struct unpin_endpoint_filter) == 8192, "unpin_endpoint_filter");

static inline __u32 endpoint_bit(__be32 address, __be16 port) {
  return ((address * 0x9e3779b1u) ^ (port * 0x85ebca6bu)) >> 16; /* < UNPIN_ENDPOINT_BITS */
}

static inline int has_endpoint(const struct unpin_endpoint_filter *filter, __be32 address,
                               __be16 port) {
  const __u32 bit = endpoint_bit(address, port);

  return filter->words[bit >> 6 & (UNPIN_ENDPOINT_WORDS - 1)] >> (bit & 63) & 1;
}

static inline void set_endpoint(struct unpin_endpoint_filter *filter, __be32 address, __be16 port) {
  const __u32 bit = endpoint_bit(address, port);

  filter->words[bit >> 6 & (UNPIN_ENDPOINT_WORDS - 1)] |= 1ULL << (bit & 63);
}
