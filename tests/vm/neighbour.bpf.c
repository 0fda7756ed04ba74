// SPDX-License-Identifier: GPL-2.0
// Somebody else's XDP program: counts what arrives on its interface and lets it pass.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

__u64 packets_seen = 0;

SEC("xdp")
int neighbour(struct xdp_md* context) {
  (void)context;
  __sync_fetch_and_add(&packets_seen, 1);
  return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
