// SPDX-License-Identifier: GPL-2.0
/* A bad wire. Joins two interfaces frame by frame; TCP packets are lost, or held up in user space so that later ones
 * overtake them, with seeded probabilities. (netem is not in every kernel.) It sits between two hosts, where every
 * frame has already been segmented: a merged or unsegmented one would be lost or late as a whole. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/testkit/impair.h"

/* Set before load. */
const volatile __u32 seed = 1;

/* By direction: what becomes of its packets. User space writes; the programs read. */
struct impair_direction directions[2] = {};

/* By direction: what became of them. The programs write; user space reads. */
struct impair_counts counts[2] = {};

/* Where user space holds up what is late; by direction. */
struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} delays SEC(".maps");

/* Where a direction leads; by direction. */
struct {
  __uint(type, BPF_MAP_TYPE_DEVMAP);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} exits SEC(".maps");

/* The finaliser of splitmix64: the same seed and packet number give the same fate. */
static __always_inline __u32 permille(__u64 number, __u32 direction) {
  __u64 mixed = (number * 2 + direction + ((__u64)seed << 32)) * 0x9e3779b97f4a7c15ULL;

  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return (mixed ^ (mixed >> 31)) % 1000;
}

static __always_inline int is_pure_ack(const struct iphdr *ip, const struct tcphdr *tcp) {
  return bpf_ntohs(ip->tot_len) == sizeof(*ip) + tcp->doff * 4 && !tcp->syn && !tcp->fin && !tcp->rst;
}

/* True if the frame is TCP over IPv4 without IP options; the rest of the wire is perfect. */
static __always_inline int find_tcp(struct xdp_md *ctx, struct iphdr **ip, struct tcphdr **tcp) {
  void *end = (void *)(long)ctx->data_end;
  struct ethhdr *ethernet = (void *)(long)ctx->data;

  *ip = (void *)(ethernet + 1);
  *tcp = (void *)(*ip + 1);
  if ((void *)(*tcp + 1) > end) return 0;
  return ethernet->h_proto == bpf_htons(ETH_P_IP) && (*ip)->ihl == 5 && (*ip)->protocol == IPPROTO_TCP;
}

static __always_inline int pass_on(struct xdp_md *ctx, __u32 direction) {
  struct impair_direction *rules = &directions[direction];
  struct impair_counts *count = &counts[direction];
  struct tcphdr *tcp;
  struct iphdr *ip;
  __u32 fate;

  if (!find_tcp(ctx, &ip, &tcp)) return bpf_redirect_map(&exits, direction, 0);
  if (rules->block_acks && is_pure_ack(ip, tcp)) {
    __sync_fetch_and_add(&count->blocked, 1);
    return XDP_DROP;
  }
  fate = permille(__sync_fetch_and_add(&count->packets, 1), direction);
  if (fate < rules->loss_permille) {
    __sync_fetch_and_add(&count->lost, 1);
    return XDP_DROP;
  }
  if (fate < rules->loss_permille + rules->late_permille) {
    __sync_fetch_and_add(&count->late, 1);
    return bpf_redirect_map(&delays, direction, 0);
  }
  return bpf_redirect_map(&exits, direction, 0);
}

SEC("xdp")
int forth(struct xdp_md *ctx) { return pass_on(ctx, 0); }

SEC("xdp")
int back(struct xdp_md *ctx) { return pass_on(ctx, 1); }

static __always_inline int leave(struct xdp_md *ctx, __u32 direction) {
  return ctx->data < ctx->data_end ? bpf_redirect_map(&exits, direction, 0) : XDP_DROP;
}

/* On the delay devices: what user space has held up leaves. */
SEC("xdp")
int forth_late(struct xdp_md *ctx) { return leave(ctx, 0); }

SEC("xdp")
int back_late(struct xdp_md *ctx) { return leave(ctx, 1); }

char LICENSE[] SEC("license") = "GPL";
