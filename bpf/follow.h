/* SPDX-License-Identifier: GPL-2.0 */
/* Walks the frame headers inside one packet. Works on copies: the caller holds no lock meanwhile. */
#pragma once

#include "bpf/http2.h"
#include "bpf/maps.h"
#include "bpf/packet.h"
#include "bpf/verifier.h"

enum {
  FOLLOW_MAX_STEPS = 8192, /* headers and preface bytes in the largest packet generic mode can hand us */
};

struct walker {
  struct xdp_md *ctx;
  struct unpin_walk *walk;
};

static __always_inline long follow_preface(struct xdp_md *ctx, struct unpin_walk *walk, __u32 offset, __u32 have) {
  __u8 bytes[2];

  if (bpf_xdp_load_bytes(ctx, offset, bytes, 1)) return 1;
  if (have > 1 && bpf_xdp_load_bytes(ctx, offset + 1, bytes + 1, 1)) return 1;
  http2_on_preface_byte(&walk->follower, bytes[0], have > 1 ? bytes[1] : -1);
  return 0;
}

/* Appends what there is of a header to the partial one. */
static __always_inline long follow_partial(struct xdp_md *ctx, struct unpin_walk *walk, __u32 offset, __u32 have) {
  struct unpin_follower *f = &walk->follower;
  __u32 i;

  for (i = 0; i < 8; i++) {
    if (i >= have) break;
    if (bpf_xdp_load_bytes(ctx, offset + i, &f->partial[masked(f->partial_length, 7)], 1)) return 1;
    f->partial_length++;
  }
  return 1;
}

static __always_inline long follow_header(struct xdp_md *ctx, struct unpin_walk *walk, __u32 offset) {
  struct unpin_follower *f = &walk->follower;
  __u8 header[32] = {}; /* room for the verifier's doubts */
  const __u32 old = masked(f->partial_length, 15);

  __builtin_memcpy(header, f->partial, sizeof(f->partial));
  if (old >= HTTP2_FRAME_HEADER) return 1;
  if (bpf_xdp_load_bytes(ctx, offset, header + old, HTTP2_FRAME_HEADER - old)) return 1;
  http2_on_header(f, header);
  return 0;
}

/* A packet may be cut where a frame ends inside it, be it the first frame, whose header came with an earlier packet. */
static __always_inline void note_cut(struct unpin_walk *walk) {
  const struct unpin_follower *f = &walk->follower;

  if (!walk->want_cut || !http2_at_boundary(f) || !seq_before(walk->sequence, f->next_header)) return;
  walk->at_cut = *f;
  walk->cut = f->next_header;
  walk->has_cut = 1;
}

static long follow_step(__u32 index, struct walker *walker) {
  struct unpin_walk *walk = walker->walk;
  struct unpin_follower *f = &walk->follower;
  const __u32 need = http2_need(f);
  const __u32 offset = walk->payload_offset + (need - walk->sequence);
  const __u32 have = walk->end - need;

  (void)index;
  if (!http2_follows(f) || !seq_before(need, walk->end)) return 1;
  note_cut(walk);
  if (f->flags & UNPIN_FOLLOWER_PREFACE) return follow_preface(walker->ctx, walk, offset, have);
  if (have + f->partial_length < HTTP2_FRAME_HEADER) return follow_partial(walker->ctx, walk, offset, have);
  return follow_header(walker->ctx, walk, offset);
}

/* Takes the walk in `scratch` as far as the packet goes. Requires: sequence <= http2_need(follower) < end.
 * A function of its own to the verifier, as all that are not static. */
__noinline int follow_packet(struct xdp_md *ctx) {
  struct unpin_scratch *room = find_scratch();
  struct walker walker = {.ctx = ctx};

  if (!room) return 0;
  walker.walk = &room->walk;
  bpf_loop(FOLLOW_MAX_STEPS, follow_step, &walker, 0);
  return 0;
}
