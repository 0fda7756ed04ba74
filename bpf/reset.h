/* SPDX-License-Identifier: GPL-2.0 */
/* Turns a packet into the RST that answers it. */
#pragma once

#include "bpf/checksum.h"
#include "bpf/packet.h"

enum { RESET_TTL = 64, RESET_FRAME = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr) };

static __always_inline void swap_macs(struct ethhdr *eth) {
  __u8 mac[ETH_ALEN];

  __builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
  __builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
  __builtin_memcpy(eth->h_source, mac, ETH_ALEN);
}

static __always_inline __u64 sum_words(const void *bytes, __u32 size) {
  const __u16 *words = bytes;
  __u64 sum = 0;
  __u32 i;

  for (i = 0; i < size / 2; i++) sum += words[i];
  return sum;
}

/* RFC 9293 section 3.10.7.1: exactly at the number the sender expects next, or acknowledging what it sent. */
static __always_inline void fill_reset(struct tcphdr *tcp, const struct packet *pkt) {
  const __u32 length = pkt->payload_length + !!(pkt->flags & TCP_SYN) + !!(pkt->flags & TCP_FIN);

  tcp->source = pkt->key.destination_port;
  tcp->dest = pkt->key.source_port;
  tcp->doff = sizeof(*tcp) / 4;
  tcp->rst = 1;
  if (pkt->flags & TCP_ACK) {
    tcp->seq = bpf_htonl(pkt->ack);
  } else {
    tcp->ack = 1;
    tcp->ack_seq = bpf_htonl(pkt->seq + length);
  }
}

static __noinline enum unpin_verdict answer_with_reset(struct xdp_md *ctx, const struct packet *pkt,
                                                       enum unpin_verdict verdict) {
  struct iphdr ip = {
      .version = 4,
      .ihl = 5,
      .tot_len = bpf_htons(RESET_FRAME - ETH_HLEN),
      .frag_off = bpf_htons(0x4000), /* don't fragment */
      .ttl = RESET_TTL,
      .protocol = IPPROTO_TCP,
      .saddr = pkt->key.destination,
      .daddr = pkt->key.source,
  };
  struct tcphdr tcp = {};
  struct cursor cursor;
  void *frame;

  if (pkt->flags & TCP_RST) return UNPIN_DROP_UNKNOWN; /* never answered: RFC 9293 section 3.10.7.1 */
  if (bpf_xdp_adjust_tail(ctx, (int)RESET_FRAME - (int)(ctx->data_end - ctx->data))) return UNPIN_DROP_INTERNAL;
  fill_reset(&tcp, pkt);
  ip.check = ~checksum_fold(sum_words(&ip, sizeof(ip)));
  tcp.check = ~checksum_fold(sum_words(&ip.saddr, 8) + bpf_htons(IPPROTO_TCP) + bpf_htons(sizeof(tcp)) +
                             sum_words(&tcp, sizeof(tcp)));
  cursor = frame_cursor(ctx, 0);
  frame = take(&cursor, RESET_FRAME);
  if (!frame) return UNPIN_DROP_INTERNAL;
  swap_macs(frame);
  __builtin_memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
  __builtin_memcpy(frame + ETH_HLEN + sizeof(ip), &tcp, sizeof(tcp));
  return verdict;
}
