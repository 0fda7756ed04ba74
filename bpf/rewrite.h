/* SPDX-License-Identifier: GPL-2.0 */
/* NAT: new addresses, ports and L2 header, with checksum deltas computed once a connection. */
#pragma once

#include "bpf/checksum.h"
#include "bpf/next_hop.h"
#include "bpf/packet.h"

/* Prepares the rewriting of packets with key `from` so that they carry key `to`. The next hop is left alone. */
static __always_inline void plan_rewrite(struct unpin_rewrite *rewrite, const struct unpin_flow_key *from,
                                         const struct unpin_flow_key *to) {
  const __u64 addresses = checksum_replace32(from->source, to->source) +
                          checksum_replace32(from->destination, to->destination);
  const __u64 ports = checksum_replace16(from->source_port, to->source_port) +
                      checksum_replace16(from->destination_port, to->destination_port);

  rewrite->source = to->source;
  rewrite->destination = to->destination;
  rewrite->source_port = to->source_port;
  rewrite->destination_port = to->destination_port;
  rewrite->ip_delta = checksum_fold(addresses + (__u16)~bpf_htons(0x0100)); /* the TTL falls by one */
  rewrite->tcp_delta = checksum_fold(addresses + ports);
}

/* Rewrites the headers. `tcp_added` is what else changed under the TCP checksum. */
static __always_inline enum unpin_verdict rewrite_packet(struct xdp_md *ctx, struct packet *pkt,
                                                         const struct unpin_rewrite *rewrite, __u64 tcp_added) {
  struct cursor cursor = frame_cursor(ctx, 0);
  struct ethhdr *eth = take(&cursor, sizeof(*eth));
  struct iphdr *ip = ipv4_header(ctx);
  struct tcphdr *tcp = tcp_header(ctx, pkt);

  if (!eth || !ip || !tcp) return UNPIN_DROP_INTERNAL;
  if (pkt->ttl <= 1) return UNPIN_DROP_TTL;

  __builtin_memcpy(eth->h_dest, rewrite->destination_mac, ETH_ALEN);
  __builtin_memcpy(eth->h_source, rewrite->source_mac, ETH_ALEN);
  ip->ttl--;
  ip->saddr = rewrite->source;
  ip->daddr = rewrite->destination;
  ip->check = checksum_update(ip->check, rewrite->ip_delta);
  tcp->source = rewrite->source_port;
  tcp->dest = rewrite->destination_port;
  tcp->check = checksum_update(tcp->check, rewrite->tcp_delta + tcp_added);
  pkt->egress = rewrite->egress_ifindex;
  return UNPIN_CONTINUE;
}
