/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Sequence translation around a spliced GOAWAY. Server space is what the server counts, client space what the client
 * counts: from the boundary on they differ by 17. Pure, no maps. */
#pragma once

#include "bpf/http2.h"

static inline int splice_is_on(const struct unpin_splice *splice) {
  return splice->state >= UNPIN_SPLICE_COMMITTED;
}

static inline int splice_is_armed(const struct unpin_splice *splice) {
  return splice->state == UNPIN_SPLICE_ARMED || splice->state == UNPIN_SPLICE_ARMED_TRIM;
}

/* Must [sequence, end) of s2c, a FIN counted, be cut at the boundary? Only while the client may lack what is before it: later, such a
 * packet shifted as a whole brings old bytes the client discards, then new ones at their right place. */
static inline int splice_must_cut(const struct unpin_splice *splice, __u32 sequence, __u32 end) {
  return splice->state == UNPIN_SPLICE_COMMITTED && seq_before(sequence, splice->boundary) &&
         seq_before(splice->boundary, end);
}

/* Server space to client space, for the sequence number of an s2c segment that ends at `end`, a FIN counted. */
static inline __u32 splice_to_client(const struct unpin_splice *splice, __u32 sequence, __u32 end) {
  if (!splice_is_on(splice)) return sequence;
  if (splice->state == UNPIN_SPLICE_PAST) return sequence + UNPIN_GOAWAY_LENGTH;
  if (!seq_before(sequence, splice->boundary)) return sequence + UNPIN_GOAWAY_LENGTH;
  if (splice->state == UNPIN_SPLICE_ACKNOWLEDGED && seq_before(splice->boundary, end))
    return sequence + UNPIN_GOAWAY_LENGTH;
  return sequence;
}

/* Client space to server space: an acknowledgement, or an edge of a SACK block. Inside the GOAWAY is the boundary. */
static inline __u32 splice_to_server(const struct unpin_splice *splice, __u32 sequence) {
  const __u32 boundary = splice->boundary;

  if (!splice_is_on(splice)) return sequence;
  if (splice->state == UNPIN_SPLICE_PAST) return sequence - UNPIN_GOAWAY_LENGTH;
  if (!seq_before(boundary, sequence)) return sequence;
  if (seq_before(sequence, boundary + UNPIN_GOAWAY_LENGTH)) return boundary;
  return sequence - UNPIN_GOAWAY_LENGTH;
}

/* Does this acknowledgement of the client cover the whole GOAWAY? */
static inline int splice_is_acknowledged_by(const struct unpin_splice *splice, __u32 ack) {
  return !seq_before(ack, splice->boundary + UNPIN_GOAWAY_LENGTH);
}

/* 2^30 bytes on, comparing with the boundary would soon fail by wrapping: from there on every number is beyond it. */
static inline void splice_age(struct unpin_splice *splice, __u32 sequence) {
  const __u32 distance = sequence - splice->boundary;

  if (splice->state == UNPIN_SPLICE_ACKNOWLEDGED && distance > 1u << 30 && distance < 1u << 31)
    splice->state = UNPIN_SPLICE_PAST;
}

struct sack_block {
  __u32 left;
  __u32 right;
};

/* Translates a block in place; false if nothing of it is left to tell the server: a D-SACK of the GOAWAY, or bytes
 * beyond a hole at the boundary, which the server would take for reneging. `ack` is the client's. */
static inline int splice_translate_sack(const struct unpin_splice *splice, __u32 ack,
                                        struct sack_block *block) {
  const int hole =
      splice->state == UNPIN_SPLICE_COMMITTED && !splice_is_acknowledged_by(splice, ack);

  if (hole && !seq_before(block->left, splice->boundary)) return 0;
  block->left = splice_to_server(splice, block->left);
  block->right = splice_to_server(splice, block->right);
  return block->left != block->right;
}
