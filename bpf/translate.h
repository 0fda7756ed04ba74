/* SPDX-License-Identifier: GPL-2.0 */
/* Carries the splice's arithmetic (splice.h) into the packet: sequence numbers, acknowledgements, SACK blocks, and the
 * cut at the boundary. Each function returns what it added under the TCP checksum. */
#pragma once

#include "bpf/checksum.h"
#include "bpf/flow.h"
#include "bpf/splice.h"
#include "bpf/tcp_options.h"

enum { CUT_CHUNK = 64, CUT_MAX_CHUNKS = 1024 };

/* The bytes that a cut removes, summed. */
struct cut_sum {
  struct xdp_md *ctx;
  __u64 sum;
  __u32 offset;
  __u32 left;
};

static long sum_chunk(__u32 index, struct cut_sum *cut) {
  __u16 words[CUT_CHUNK / 2] = {};
  const __u32 less = one_less(cut->left < CUT_CHUNK ? cut->left : CUT_CHUNK);
  const __u32 size = less + 1;
  __u32 i;

  (void)index;
  if (less >= CUT_CHUNK) return 1; /* nothing left */
  if (bpf_xdp_load_bytes(cut->ctx, cut->offset, words, size)) return 1;
  for (i = 0; i < CUT_CHUNK / 2; i++) cut->sum += words[i];
  cut->offset += size;
  cut->left -= size;
  return 0;
}

static __always_inline __u16 sum_removed(struct xdp_md *ctx, const struct packet *pkt, __u32 offset,
                                         __u32 length) {
  struct cut_sum cut = {.ctx = ctx, .offset = offset, .left = length};
  __u16 sum;

  bpf_loop(CUT_MAX_CHUNKS, sum_chunk, &cut, 0);
  sum = checksum_fold(cut.sum);
  /* A byte's weight depends on its place from the TCP header on. */
  return (offset - pkt->l4_offset) & 1 ? (__u16)(sum << 8 | sum >> 8) : sum;
}

/* Shortens the packet so that it ends at `boundary`. FIN goes with the tail. False if the driver cannot. */
__noinline int cut_packet(struct xdp_md *ctx, struct packet *pkt, __u32 boundary) {
  const __u32 frame = ctx->data_end - ctx->data;
  __u16 removed_sum, total, flags;
  __u32 kept, removed, new_frame;
  struct tcphdr *tcp;
  struct iphdr *ip;
  __u64 added;

  if (!pkt) return 0;
  kept = boundary - pkt->seq;
  removed = pkt->payload_length - kept;
  new_frame = pkt->payload_offset + kept;
  if (kept > pkt->payload_length) return 0;
  removed_sum = sum_removed(ctx, pkt, new_frame, removed);
  if (bpf_xdp_adjust_tail(ctx, (int)new_frame - (int)frame)) return 0;
  ip = ipv4_header(ctx);
  tcp = tcp_header(ctx, pkt);
  if (!ip || !tcp) return 0;

  total = bpf_htons(bpf_ntohs(ip->tot_len) - removed);
  ip->check = checksum_update(ip->check, checksum_replace16(ip->tot_len, total));
  ip->tot_len = total;
  flags = ((__u16 *)tcp)[6];
  tcp->fin = 0;
  added = checksum_replace16(flags, ((__u16 *)tcp)[6]);
  added += checksum_replace16(
      bpf_htons(pkt->payload_offset - pkt->l4_offset + pkt->payload_length),
      bpf_htons(pkt->payload_offset - pkt->l4_offset + kept)); /* pseudo header */
  added += (__u16)~removed_sum;
  tcp->check = checksum_update(tcp->check, added);
  pkt->payload_length = kept;
  pkt->flags &= ~TCP_FIN;
  return 1;
}

static __always_inline __u64 translate_s2c(struct xdp_md *ctx, const struct packet *pkt,
                                           const struct unpin_splice *splice) {
  const __u32 seq = splice_to_client(splice, pkt->seq, segment_end(pkt));
  struct tcphdr *tcp = tcp_header(ctx, pkt);
  __be32 before;

  if (!tcp || seq == pkt->seq) return 0;
  before = tcp->seq;
  tcp->seq = bpf_htonl(seq);
  return checksum_replace32(before, tcp->seq);
}

static __always_inline __u64 sum_options(const struct tcp_options *options) {
  __u64 sum = 0;
  __u32 i;

  for (i = 0; i < TCP_MAX_OPTIONS; i += 2) sum += *(const __u16 *)(options->bytes + i);
  return sum;
}

/* Translates the SACK blocks in place, closing up over those that are dropped. True if one lies beyond the boundary. */
static __always_inline int translate_blocks(const struct unpin_splice *splice, __u32 ack,
                                            struct tcp_options *options, __u32 at) {
  const __u32 count = (options->bytes[at + 1] - 2u) / 8;
  __u32 kept = 0, hole = 0, i;

  for (i = 0; i < 4; i++) {
    const __u32 from = masked(at + 2 + i * 8, 63), to = masked(at + 2 + kept * 8, 63);
    struct sack_block block;

    if (i >= count || from + 8 > TCP_MAX_OPTIONS || to + 8 > TCP_MAX_OPTIONS) break;
    block.left = read_be32(options->bytes + from);
    block.right = read_be32(options->bytes + from + 4);
    hole |= !seq_before(splice->boundary, ack) && seq_before(splice->boundary, block.right);
    if (!splice_translate_sack(splice, ack, &block)) continue;
    write_be32(options->bytes + to, block.left);
    write_be32(options->bytes + to + 4, block.right);
    kept++;
  }
  for (i = kept; i < 4; i++) {
    const __u32 from = masked(at + 2 + i * 8, 63);

    if (i >= count || from + 8 > TCP_MAX_OPTIONS) break;
    write_be32(options->bytes + from, 0x01010101); /* NOPs */
    write_be32(options->bytes + from + 4, 0x01010101);
  }
  if (kept)
    options->bytes[at + 1] = 2 + kept * 8;
  else
    options->bytes[at] = options->bytes[at + 1] = TCPOPT_NOOP;
  return hole;
}

/* Returns what the SACK option's change adds under the checksum; bit 63: the client reports a hole at the boundary. */
__noinline __u64 translate_sack(struct xdp_md *ctx, const struct packet *pkt,
                                const struct unpin_splice *splice) {
  struct tcp_options options = {};
  __u64 added;
  __u32 at, less;
  int hole;

  if (!pkt || !splice) return 0;
  at = masked(find_tcp_option(ctx, pkt, TCPOPT_SACK_BLOCKS, &options), 63);
  less = one_less(options.length);
  if (at + 10 > TCP_MAX_OPTIONS || less >= TCP_MAX_OPTIONS) return 0;
  if (options.bytes[at + 1] < 10 || (options.bytes[at + 1] - 2) & 7)
    return 0; /* no whole blocks: nobody reads it */
  added = (__u16)~checksum_fold(sum_options(&options));
  hole = translate_blocks(splice, pkt->ack, &options, at);
  if (bpf_xdp_store_bytes(ctx, pkt->l4_offset + TCP_MIN_HEADER, options.bytes, less + 1)) return 0;
  return (added + sum_options(&options)) | (hole ? 1ULL << 63 : 0);
}

/* The client has the whole GOAWAY: both directions may forget the case in which it has not. */
static __noinline void note_acknowledged(struct unpin_flow *c2s, const struct unpin_flow_key *key) {
  struct unpin_splice splice = read_splice(c2s);
  struct unpin_flow *s2c = find_flow(&c2s->reverse);

  splice.state = UNPIN_SPLICE_ACKNOWLEDGED;
  write_splice(c2s, splice);
  if (s2c) write_splice(s2c, splice);
  report_connection(c2s, key, UNPIN_EVENT_ACKNOWLEDGED, 0);
}

static __noinline void note_hole(struct unpin_flow *c2s, const struct unpin_flow_key *key) {
  /* One report in eight: a window of segments can be in flight beyond the hole. */
  if ((c2s->hole_reports++ & 7) == 0) report_connection(c2s, key, UNPIN_EVENT_HOLE, 0);
}

static __noinline __u64 translate_c2s(struct xdp_md *ctx, const struct packet *pkt,
                                      struct unpin_flow *flow, struct unpin_splice *splice) {
  struct tcphdr *tcp = tcp_header(ctx, pkt);
  __u64 added = 0, sack = 0;
  __be32 before;

  if (!tcp || !(pkt->flags & TCP_ACK)) return 0;
  before = tcp->ack_seq;
  tcp->ack_seq = bpf_htonl(splice_to_server(splice, pkt->ack));
  added = checksum_replace32(before, tcp->ack_seq);
  if (!has_timestamps_only(ctx, pkt) && pkt->payload_offset - pkt->l4_offset > TCP_MIN_HEADER)
    sack = translate_sack(ctx, pkt, splice);
  added += sack & ~(1ULL << 63);

  if (splice->state == UNPIN_SPLICE_COMMITTED) {
    if (splice_is_acknowledged_by(splice, pkt->ack))
      note_acknowledged(flow, &pkt->key);
    else if (sack >> 63)
      note_hole(flow, &pkt->key);
    return added;
  }
  splice_age(splice, pkt->ack);
  if (splice->state == UNPIN_SPLICE_PAST) write_splice(flow, *splice);
  return added;
}
