/* SPDX-License-Identifier: GPL-2.0 */
/* A frame becomes a struct packet: what later stages need to know, in host order but for addresses and ports.
 * No maps. Nothing here keeps a pointer into the frame, so a helper that moves the frame cannot leave one dangling. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"
#include "bpf/verifier.h"

enum packet_limits {
  IPV4_MORE_FRAGMENTS = 0x2000,
  IPV4_FRAGMENT_OFFSET = 0x1fff,
  TCP_MIN_HEADER = 20,
  TCP_MAX_OPTIONS = 40,
};

enum tcp_flag { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

struct packet {
  struct unpin_flow_key key;
  __u16 l4_offset;      /* of the TCP header, from the start of the frame */
  __u16 payload_offset; /* likewise */
  __u32 payload_length;
  __u32 seq;
  __u32 ack;
  __u16 window;
  __u8 flags; /* enum tcp_flag */
  __u8 ttl;
  __u8 is_first_fragment;
  __u32 egress; /* interface a rewritten packet leaves by */
};

/* A reading position. take() is the only bounds check on headers. */
struct cursor {
  void *pos;
  void *end;
};

static __always_inline struct cursor frame_cursor(const struct xdp_md *ctx, __u32 offset) {
  return (struct cursor){.pos = (void *)(long)ctx->data + offset,
                         .end = (void *)(long)ctx->data_end};
}

/* Returns the next `size` bytes and moves past them; NULL if they are not there. */
static __always_inline void *take(struct cursor *cursor, __u32 size) {
  void *bytes = cursor->pos;

  if (bytes + size > cursor->end) return NULL;
  cursor->pos = bytes + size;
  return bytes;
}

/* One past the last sequence number the segment occupies in the stream of bytes (SYN and FIN not counted). */
static __always_inline __u32 payload_end(const struct packet *pkt) {
  return pkt->seq + pkt->payload_length;
}

/* Likewise with the FIN, which takes a number as a byte does. */
static __always_inline __u32 segment_end(const struct packet *pkt) {
  return payload_end(pkt) + !!(pkt->flags & TCP_FIN);
}

static __always_inline enum unpin_verdict parse_tcp(struct cursor *cursor, __u32 length,
                                                    struct packet *pkt) {
  const struct tcphdr *tcp = take(cursor, sizeof(*tcp));
  __u32 header;

  if (!tcp || length < sizeof(*tcp)) return UNPIN_PASS_TRUNCATED;
  header = tcp->doff * 4;
  if (header < TCP_MIN_HEADER || header > length) return UNPIN_PASS_TRUNCATED;

  pkt->key.source_port = tcp->source;
  pkt->key.destination_port = tcp->dest;
  pkt->payload_offset = pkt->l4_offset + header;
  pkt->payload_length = length - header;
  pkt->seq = bpf_ntohl(tcp->seq);
  pkt->ack = bpf_ntohl(tcp->ack_seq);
  pkt->window = bpf_ntohs(tcp->window);
  pkt->flags = ((const __u8 *)tcp)[13];
  return UNPIN_CONTINUE;
}

static __always_inline enum unpin_verdict parse_ipv4(struct cursor *cursor, struct packet *pkt) {
  const void *start = cursor->pos;
  const struct iphdr *ip = take(cursor, sizeof(*ip));
  __u32 header, total;
  __u16 fragment;

  if (!ip) return UNPIN_PASS_TRUNCATED;
  header = ip->ihl * 4;
  total =
      masked(bpf_ntohs(ip->tot_len), 0xffff); /* Linux 6.1 forgets bounds when bytes are swapped */
  fragment = bpf_ntohs(ip->frag_off);
  /* Frames may be padded, never shorter than the datagram says. */
  if (ip->version != 4 || header < sizeof(*ip) || total < header || start + total > cursor->end)
    return UNPIN_PASS_TRUNCATED;
  if (ip->protocol != IPPROTO_TCP) return UNPIN_PASS_NOT_TCP;
  if (fragment & IPV4_FRAGMENT_OFFSET) return UNPIN_PASS_FRAGMENT;

  pkt->key.source = ip->saddr;
  pkt->key.destination = ip->daddr;
  pkt->ttl = ip->ttl;
  pkt->is_first_fragment = !!(fragment & IPV4_MORE_FRAGMENTS);
  pkt->l4_offset = ETH_HLEN + header;
  cursor->pos = (void *)start + header;
  return parse_tcp(cursor, total - header, pkt);
}

static __always_inline enum unpin_verdict parse_packet(const struct xdp_md *ctx,
                                                       struct packet *pkt) {
  struct cursor cursor = frame_cursor(ctx, 0);
  const struct ethhdr *eth = take(&cursor, sizeof(*eth));

  if (!eth) return UNPIN_PASS_TRUNCATED;
  if (eth->h_proto != bpf_htons(ETH_P_IP)) return UNPIN_PASS_NOT_IPV4;
  return parse_ipv4(&cursor, pkt);
}

/* The headers again, for writing; NULL only to satisfy the verifier. */
static __always_inline struct iphdr *ipv4_header(const struct xdp_md *ctx) {
  struct cursor cursor = frame_cursor(ctx, ETH_HLEN);

  return take(&cursor, sizeof(struct iphdr));
}

static __always_inline struct tcphdr *tcp_header(const struct xdp_md *ctx,
                                                 const struct packet *pkt) {
  struct cursor cursor = frame_cursor(ctx, pkt->l4_offset & 0x7f); /* at most 14 + 60 */

  return take(&cursor, sizeof(struct tcphdr));
}
