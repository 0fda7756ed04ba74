/* SPDX-License-Identifier: GPL-2.0 */
/* A packet's whole life, top to bottom. Each line is one stage in one file. */
#include "bpf/maps.h"

SEC("xdp")
int unpin_ingress(struct xdp_md *ctx) {
  __u32 key = UNPIN_PASS_NO_SERVICE;
  __u64 *count = bpf_map_lookup_elem(&verdict_counts, &key);

  if (count && ctx) (*count)++;
  return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
