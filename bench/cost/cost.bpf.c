/* SPDX-License-Identifier: GPL-2.0 */
/* Wrappers that make BPF_PROG_TEST_RUN fair: it does not restore the packet between repeats, so these do (length and first
 * bytes), let another flow come each time, and tail-call the program measured. And the floors it is compared with. */
#include "bench/cost/setup.h"
#include "bpf/packet.h"

enum {
  HEAD = 66, /* Ethernet, IPv4 and TCP with timestamps: all that a program writes to */
  TARGET_FLOOR = 0,
  TARGET_LOOKUP = 1,
  TARGET_PRODUCT = 2,
};

struct cost_setup setup;

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 3);
  __type(key, __u32);
  __type(value, __u32);
} targets SEC(".maps");

/* The product's own table, shared with it by the harness. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNPIN_DEFAULT_FLOWS);
  __type(key, struct unpin_flow_key);
  __type(value, struct unpin_flow);
} flows SEC(".maps");

/* The frame, HEAD bytes of it proved to be there; NULL only to satisfy the verifier. */
static __always_inline void* restore_length(struct xdp_md* ctx) {
  const long missing = (long)setup.frame - (long)(ctx->data_end - ctx->data);

  struct cursor cursor;

  if (missing && bpf_xdp_adjust_tail(ctx, (int)missing)) return NULL;
  cursor = frame_cursor(ctx, 0);
  return take(&cursor, HEAD);
}

static __always_inline void restore_head(void* frame, const struct cost_head* head) {
  __u64* words = frame;
  int i;

  for (i = 0; i < 8; i++) words[i] = head->words[i];
  *(__u16*)(frame + 64) = head->tail;
}

/* A full-period generator: every flow comes once before any comes again, in no order a prefetcher could guess. */
static __always_inline void turn_to_next_flow(void) {
  setup.flow = (setup.flow * 1664525 + 1013904223) & setup.flow_mask;
  if (!setup.flow) setup.seq += setup.seq_step;
}

static __always_inline int wrap(struct xdp_md* ctx, __u32 target) {
  void* frame = restore_length(ctx);
  struct iphdr* ip;
  struct tcphdr* tcp;
  __be32 address;

  if (!frame) return XDP_ABORTED;
  restore_head(frame, &setup.heads[0]);
  ip = frame + ETH_HLEN;
  tcp = frame + ETH_HLEN + sizeof(*ip);
  address = bpf_htonl(setup.first_address + setup.flow);
  if (setup.varies_source)
    ip->saddr = address;
  else
    ip->daddr = address;
  tcp->seq = bpf_htonl(setup.seq);
  turn_to_next_flow();
  bpf_tail_call_static(ctx, &targets, target);
  return XDP_ABORTED;
}

SEC("xdp") int wrap_floor(struct xdp_md* ctx) { return wrap(ctx, TARGET_FLOOR); }
SEC("xdp") int wrap_lookup(struct xdp_md* ctx) { return wrap(ctx, TARGET_LOOKUP); }
SEC("xdp") int wrap_product(struct xdp_md* ctx) { return wrap(ctx, TARGET_PRODUCT); }

/* SYN, SYN-ACK and ACK of one connection after another. The frame still holds the SYN as it was rewritten: the SYN-ACK
 * answers that. */
SEC("xdp")
int wrap_handshake(struct xdp_md* ctx) {
  void* frame = restore_length(ctx);
  const __u32 phase = setup.phase;
  __be32 backend, gateway, ports;
  struct iphdr* ip;
  __be32* both_ports;

  if (!frame || phase > 2) return XDP_ABORTED;
  ip = frame + ETH_HLEN;
  both_ports = frame + ETH_HLEN + sizeof(*ip);
  gateway = ip->saddr;
  backend = ip->daddr;
  ports = *both_ports;
  restore_head(frame, &setup.heads[phase]);
  if (phase == 1) {
    ip->saddr = backend;
    ip->daddr = gateway;
    *both_ports = ports << 16 | ports >> 16;
    setup.phase = 2;
  } else {
    ip->saddr = bpf_htonl(setup.first_address + setup.flow);
    if (phase == 2) turn_to_next_flow();
    setup.phase = phase == 0 ? 1 : 0;
  }
  bpf_tail_call_static(ctx, &targets, TARGET_PRODUCT);
  return XDP_ABORTED;
}

static __always_inline int swap_macs_and_send(struct xdp_md* ctx) {
  struct cursor cursor = frame_cursor(ctx, 0);
  struct ethhdr* eth = take(&cursor, sizeof(*eth));
  __u8 mac[ETH_ALEN];

  if (!eth) return XDP_ABORTED;
  __builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
  __builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
  __builtin_memcpy(eth->h_source, mac, ETH_ALEN);
  return XDP_TX;
}

SEC("xdp") int floor_tx(struct xdp_md* ctx) { return swap_macs_and_send(ctx); }

/* The least that any stateful balancer does: find the flow, and count in it. */
SEC("xdp")
int floor_lookup(struct xdp_md* ctx) {
  struct cursor cursor = frame_cursor(ctx, ETH_HLEN);
  const struct iphdr* ip = take(&cursor, sizeof(*ip));
  const struct tcphdr* tcp = take(&cursor, sizeof(*tcp));
  struct unpin_flow_key key;
  struct unpin_flow* flow;

  if (!ip || !tcp) return XDP_ABORTED;
  key = (struct unpin_flow_key){ip->saddr, ip->daddr, tcp->source, tcp->dest};
  flow = bpf_map_lookup_elem(&flows, &key);
  if (!flow) return XDP_ABORTED;
  flow->last_seen_ns++;
  return swap_macs_and_send(ctx);
}

char LICENSE[] SEC("license") = "GPL";
