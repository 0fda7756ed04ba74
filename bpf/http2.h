/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Follows one direction of an HTTP/2 connection from frame header to frame header (RFC 9113 section 4.1).
 * Pure: no maps, no helpers. The data plane, the agent's recovery and the fuzzer run this same code. */
#pragma once

#include "bpf/abi.h"

enum http2_frame_type {
  HTTP2_DATA = 0,
  HTTP2_HEADERS = 1,
  HTTP2_PRIORITY = 2,
  HTTP2_RST_STREAM = 3,
  HTTP2_SETTINGS = 4,
  HTTP2_PUSH_PROMISE = 5,
  HTTP2_PING = 6,
  HTTP2_GOAWAY = 7,
  HTTP2_WINDOW_UPDATE = 8,
  HTTP2_CONTINUATION = 9,
};

enum http2_limits {
  HTTP2_FRAME_HEADER = 9,
  HTTP2_PREFACE_LENGTH = 24,
  HTTP2_FLAG_ACK = 0x1,
  HTTP2_FLAG_END_STREAM = 0x1,
  HTTP2_FLAG_END_HEADERS = 0x4,
};

/* Sequence numbers wrap: RFC 9293 section 3.4. */
static inline int seq_before(__u32 a, __u32 b) {
  return (__s32)(a - b) < 0;
}

/* Starts a direction whose first payload byte is `sequence`. `seed` makes epochs of flows that share a key differ. */
static inline void http2_start(struct unpin_follower *f, __u8 direction, __u32 sequence, __u32 seed) {
  f->next_header = sequence;
  f->highest_seen = sequence;
  f->generation = seed;
  f->direction = direction;
  f->flags = direction == UNPIN_C2S ? UNPIN_FOLLOWER_PREFACE : 0;
}

/* The first byte the follower waits for; a packet wholly before it needs no look at its payload. */
static inline __u32 http2_need(const struct unpin_follower *f) {
  return f->next_header + f->partial_length;
}

/* False once nothing more can be learnt: another protocol, or out of sync for good. */
static inline int http2_follows(const struct unpin_follower *f) {
  return f->protocol <= UNPIN_PROTOCOL_H2 && !(f->flags & UNPIN_FOLLOWER_LOST);
}

/* One frame has ended, the next has not begun and no header block is open: the only place for a GOAWAY. */
static inline int http2_at_boundary(const struct unpin_follower *f) {
  return f->protocol == UNPIN_PROTOCOL_H2 && !f->epoch && !f->partial_length &&
         (f->flags & (UNPIN_FOLLOWER_SETTINGS_SEEN | UNPIN_FOLLOWER_GOAWAY_SEEN | UNPIN_FOLLOWER_IN_HEADER_BLOCK |
                      UNPIN_FOLLOWER_LOST)) == UNPIN_FOLLOWER_SETTINGS_SEEN;
}

/* What speaks when the preface does not match: `first` begins the connection, `second` is -1 if not seen yet. */
static inline __u8 http2_judge_client(__u8 first, int second) {
  if (first == 0x16 && (second < 0 || second == 0x03)) return UNPIN_PROTOCOL_TLS; /* RFC 8446 section 5.1 */
  if (first >= 'A' && first <= 'Z') return UNPIN_PROTOCOL_HTTP1;                  /* RFC 9112: a method */
  return UNPIN_PROTOCOL_OPAQUE;
}

/* Matches one more byte of the client connection preface (RFC 9113 section 3.4). `next`: the byte after, or -1. */
static inline void http2_on_preface_byte(struct unpin_follower *f, __u8 byte, int next) {
  /* "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", eight bytes a word, first byte lowest. */
  const __u64 word = f->partial_length < 8    ? 0x5448202a20495250ULL
                     : f->partial_length < 16 ? 0x0a0d302e322f5054ULL
                                              : 0x0a0d0a0d4d530a0dULL;

  if (byte != (__u8)(word >> ((f->partial_length & 7) * 8))) {
    f->protocol = f->partial_length ? (__u8)UNPIN_PROTOCOL_HTTP1 : http2_judge_client(byte, next);
    return;
  }
  if (++f->partial_length < HTTP2_PREFACE_LENGTH) return;
  f->partial_length = 0;
  f->next_header += HTTP2_PREFACE_LENGTH;
  f->flags &= ~UNPIN_FOLLOWER_PREFACE;
}

/* The first frame of each end must be SETTINGS, not an acknowledgement (RFC 9113 section 3.4). */
static inline __u8 http2_judge_first_frame(const __u8 *header, __u32 length, __u32 stream) {
  if (header[3] == HTTP2_SETTINGS && !(header[4] & HTTP2_FLAG_ACK) && !stream && length % 6 == 0)
    return UNPIN_PROTOCOL_H2;
  if (header[0] == 0x16 && header[1] == 0x03) return UNPIN_PROTOCOL_TLS;
  if (header[0] == 'H' && header[1] == 'T' && header[2] == 'T' && header[3] == 'P') return UNPIN_PROTOCOL_HTTP1;
  return UNPIN_PROTOCOL_OPAQUE;
}

/* What no correct endpoint sends (RFC 9113 sections 6.1 to 6.10). Seen, it means that this is not HTTP/2. */
static inline int http2_is_malformed(const struct unpin_follower *f, __u8 type, __u32 length, __u32 stream) {
  const int in_block = f->flags & UNPIN_FOLLOWER_IN_HEADER_BLOCK;

  if ((type == HTTP2_CONTINUATION) != !!in_block) return 1;
  if (type == HTTP2_SETTINGS || type == HTTP2_PING || type == HTTP2_GOAWAY) return stream != 0;
  if (type == HTTP2_RST_STREAM || type == HTTP2_WINDOW_UPDATE) return length != 4;
  return type <= HTTP2_CONTINUATION && !stream;
}

static inline void http2_count_streams(struct unpin_follower *f, __u8 type, __u8 flags, __u32 stream) {
  if (f->direction == UNPIN_C2S) {
    /* From the id, not by counting frames: this heals itself. */
    if (type == HTTP2_HEADERS && stream > f->last_stream) f->last_stream = stream;
    if (type == HTTP2_RST_STREAM) f->streams_ended++;
    return;
  }
  if (type == HTTP2_RST_STREAM && stream != f->last_stream) f->streams_ended++;
  if (type > HTTP2_HEADERS || !(flags & HTTP2_FLAG_END_STREAM)) return;
  f->streams_ended++;
  f->last_stream = stream; /* gRPC servers may send RST_STREAM(NO_ERROR) right after: that ends nothing more */
}

/* Takes in one whole frame header that begins at next_header. */
static inline void http2_on_header(struct unpin_follower *f, const __u8 header[HTTP2_FRAME_HEADER]) {
  const __u32 length = (__u32)header[0] << 16 | (__u32)header[1] << 8 | header[2];
  const __u32 stream = ((__u32)header[5] & 0x7f) << 24 | (__u32)header[6] << 16 | (__u32)header[7] << 8 | header[8];
  const __u8 type = header[3];
  const __u8 flags = header[4];

  f->partial_length = 0;
  if (!(f->flags & UNPIN_FOLLOWER_SETTINGS_SEEN)) {
    f->protocol = http2_judge_first_frame(header, length, stream);
    f->flags |= UNPIN_FOLLOWER_SETTINGS_SEEN;
  } else if (http2_is_malformed(f, type, length, stream)) {
    f->protocol = UNPIN_PROTOCOL_OPAQUE;
  }
  if (f->protocol != UNPIN_PROTOCOL_H2) return;

  if (type == HTTP2_HEADERS || type == HTTP2_PUSH_PROMISE || type == HTTP2_CONTINUATION) {
    if (flags & HTTP2_FLAG_END_HEADERS) f->flags &= ~UNPIN_FOLLOWER_IN_HEADER_BLOCK;
    else f->flags |= UNPIN_FOLLOWER_IN_HEADER_BLOCK;
  }
  if (type == HTTP2_GOAWAY) f->flags |= UNPIN_FOLLOWER_GOAWAY_SEEN;
  http2_count_streams(f, type, flags, stream);
  f->next_header += HTTP2_FRAME_HEADER + length;
}

/* Takes in contiguous bytes [sequence, sequence + length). Requires: they begin at or before http2_need(f).
 * The plain loop, for user space; the data plane walks a packet in follow.h. */
static inline void http2_feed_bytes(struct unpin_follower *f, __u32 sequence, const __u8 *bytes, __u32 length) {
  const __u32 end = sequence + length;

  while (http2_follows(f) && seq_before(http2_need(f), end)) {
    const __u32 at = http2_need(f) - sequence;
    __u8 header[HTTP2_FRAME_HEADER];
    __u32 i;

    if (f->flags & UNPIN_FOLLOWER_PREFACE) {
      http2_on_preface_byte(f, bytes[at], at + 1 < length ? bytes[at + 1] : -1);
      continue;
    }
    if (at + HTTP2_FRAME_HEADER - f->partial_length > length) {
      for (i = at; i < length; i++) f->partial[f->partial_length++ & 7] = bytes[i];
      return;
    }
    for (i = 0; i < HTTP2_FRAME_HEADER; i++)
      header[i] = i < f->partial_length ? f->partial[i & 7] : bytes[at + i - f->partial_length];
    http2_on_header(f, header);
  }
}
