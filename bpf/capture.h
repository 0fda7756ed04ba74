/* SPDX-License-Identifier: GPL-2.0 */
/* Copies the payload of a flow that is behind to the agent, which follows it exactly and hands the state back
 * (restore_follower). Packets are never dropped or held for this. */
#pragma once

#include "bpf/maps.h"
#include "bpf/verifier.h"
#include "bpf/packet.h"

enum { CAPTURE_MAX_RECORDS = 45 }; /* 64 KiB, the largest packet generic mode can hand us */

struct capture_run {
  struct xdp_md *ctx;
  const struct unpin_flow_key *key;
  const struct unpin_follower *start;
  __u32 sequence;
  __u32 offset; /* of `sequence` in the frame */
  __u32 left;
  __u32 failed;
};

static long capture_record(__u32 index, struct capture_run *run) {
  struct unpin_capture *record;
  const __u32 less = one_less(run->left < UNPIN_CAPTURE_BYTES ? run->left : UNPIN_CAPTURE_BYTES);
  const __u32 length = less + 1;

  (void)index;
  if (less >= UNPIN_CAPTURE_BYTES) return 1; /* nothing left */
  record = bpf_ringbuf_reserve(&captures, sizeof(*record), 0);
  if (!record) {
    run->failed = 1;
    return 1;
  }
  record->key = *run->key;
  record->start = *run->start;
  record->sequence = run->sequence;
  record->length = length;
  record->direction = run->start->direction;
  record->pad = 0;
  if (bpf_xdp_load_bytes(run->ctx, run->offset, record->bytes, length)) {
    bpf_ringbuf_discard(record, 0);
    run->failed = 1;
    return 1;
  }
  bpf_ringbuf_submit(record, 0);
  run->sequence += length;
  run->offset += length;
  run->left -= length;
  return 0;
}

/* False if the ring had no room for all of it. The follower as the gap found it is in `scratch`. */
__noinline int capture_payload(struct xdp_md *ctx, const struct packet *pkt) {
  struct unpin_scratch *room = find_scratch();
  struct capture_run run = {.ctx = ctx};

  if (!room || !pkt) return 0;
  run.key = &pkt->key;
  run.start = &room->gap;
  run.sequence = pkt->seq;
  run.offset = pkt->payload_offset;
  run.left = pkt->payload_length;
  bpf_loop(CAPTURE_MAX_RECORDS, capture_record, &run, 0);
  return !run.failed;
}
