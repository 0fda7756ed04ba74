/* SPDX-License-Identifier: GPL-2.0 */
/* TCP options (RFC 9293 section 3.1): finds one, whatever its place. */
#pragma once

#include "bpf/packet.h"
#include "bpf/verifier.h"

enum tcp_option_kind { TCPOPT_END = 0, TCPOPT_NOOP = 1, TCPOPT_SACK_BLOCKS = 5, TCPOPT_TIMESTAMPS = 8 };

struct tcp_options {
  __u8 bytes[TCP_MAX_OPTIONS + 32]; /* the tail is room for the verifier's doubts */
  __u32 length;
  __u32 wanted; /* enum tcp_option_kind */
  __u32 at;
  __u32 found; /* offset of the wanted option; TCP_MAX_OPTIONS: not there */
};

static long visit_option(__u32 index, struct tcp_options *options) {
  const __u32 at = masked(options->at, 63);
  __u8 kind, length;

  (void)index;
  if (at >= options->length || at >= TCP_MAX_OPTIONS) return 1;
  kind = options->bytes[at];
  length = options->bytes[at + 1];
  if (kind == TCPOPT_END) return 1;
  if (kind == TCPOPT_NOOP) {
    options->at = at + 1;
    return 0;
  }
  if (length < 2 || at + length > options->length) return 1;
  if (kind == options->wanted) {
    options->found = at;
    return 1;
  }
  options->at = at + length;
  return 0;
}

/* Reads the options of `pkt` and looks for `wanted`; returns its offset, TCP_MAX_OPTIONS if it is not there. */
static __always_inline __u32 find_tcp_option(struct xdp_md *ctx, const struct packet *pkt, __u32 wanted,
                                             struct tcp_options *options) {
  const __u32 less = one_less(pkt->payload_offset - pkt->l4_offset - TCP_MIN_HEADER);

  options->found = TCP_MAX_OPTIONS;
  if (less >= TCP_MAX_OPTIONS) return TCP_MAX_OPTIONS; /* none, too */
  if (bpf_xdp_load_bytes(ctx, pkt->l4_offset + TCP_MIN_HEADER, options->bytes, less + 1)) return TCP_MAX_OPTIONS;
  options->length = less + 1;
  options->wanted = wanted;
  options->at = 0;
  bpf_loop(TCP_MAX_OPTIONS, visit_option, options, 0);
  return options->found;
}

static __always_inline __u32 read_be32(const __u8 *bytes) {
  return (__u32)bytes[0] << 24 | (__u32)bytes[1] << 16 | (__u32)bytes[2] << 8 | bytes[3];
}

static __always_inline void write_be32(__u8 *bytes, __u32 value) {
  bytes[0] = value >> 24;
  bytes[1] = value >> 16;
  bytes[2] = value >> 8;
  bytes[3] = value;
}

/* RFC 7323 appendix A recommends this layout, and nearly everybody sends it: NOP NOP Timestamps first. */
struct aligned_timestamps {
  __be32 noop_noop_kind_length;
  __be32 tsval;
  __be32 tsecr;
};

/* Nearly every segment that acknowledges without a hole. */
static __always_inline int has_timestamps_only(const struct xdp_md *ctx, const struct packet *pkt) {
  struct cursor cursor = frame_cursor(ctx, (pkt->l4_offset & 0x7f) + TCP_MIN_HEADER);
  const struct aligned_timestamps *options = take(&cursor, sizeof(*options));

  return options && options->noop_noop_kind_length == bpf_htonl(0x0101080a) &&
         pkt->payload_offset == pkt->l4_offset + TCP_MIN_HEADER + (int)sizeof(*options);
}

__noinline int read_unaligned_timestamps(struct xdp_md *ctx, const struct packet *pkt, struct unpin_tcp_state *tcp) {
  struct tcp_options options = {};
  __u32 at;

  if (!pkt || !tcp) return 0;
  at = masked(find_tcp_option(ctx, pkt, TCPOPT_TIMESTAMPS, &options), 63);
  if (at + 10 > TCP_MAX_OPTIONS) return 0;
  tcp->tsval = read_be32(options.bytes + at + 2);
  tcp->tsecr = read_be32(options.bytes + at + 6);
  tcp->has_timestamp = 1;
  return 0;
}

/* The newest header fields of a direction, for the GOAWAY that must look like its next segment. */
static __always_inline void read_tcp_state(struct xdp_md *ctx, const struct packet *pkt,
                                           struct unpin_tcp_state *tcp) {
  struct cursor cursor = frame_cursor(ctx, (pkt->l4_offset & 0x7f) + TCP_MIN_HEADER);
  const struct aligned_timestamps *options = take(&cursor, sizeof(*options));

  tcp->ack = pkt->ack;
  tcp->window = pkt->window;
  if (pkt->payload_offset < pkt->l4_offset + TCP_MIN_HEADER + (int)sizeof(*options)) return;
  if (options && options->noop_noop_kind_length == bpf_htonl(0x0101080a)) {
    tcp->tsval = bpf_ntohl(options->tsval);
    tcp->tsecr = bpf_ntohl(options->tsecr);
    tcp->has_timestamp = 1;
    return;
  }
  read_unaligned_timestamps(ctx, pkt, tcp);
}
