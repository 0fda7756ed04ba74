/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/host/data_plane_host.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "bpf/follow.h"
#include "bpf/tcp_options.h"

enum { ROOM = 1 << 17, GUARD = 4096 };

static struct unpin_scratch room;

void *bpf_map_lookup_elem(void *map, const void *key) {
  (void)key;
  return map == (void *)&scratch ? &room : NULL;
}

long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 length) {
  const __u32 size = ctx->data_end - ctx->data;

  if (offset > size || length > size - offset) return -1;
  memcpy(to, (void *)(long)(ctx->data + offset), length);
  return 0;
}

/* Room below 4 GiB whose last byte is followed by a page nobody may touch. */
static __u8 *guarded_room(void) {
  static __u8 *start;

  if (start) return start;
  start = mmap(NULL, ROOM + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (start == MAP_FAILED || mprotect(start + ROOM, GUARD, PROT_NONE)) abort();
  return start;
}

/* Copies the frame so that it ends at the guard page. */
static struct xdp_md place(const __u8 *frame, __u32 length) {
  __u8 *at = guarded_room() + ROOM - length;

  memcpy(at, frame, length);
  return (struct xdp_md){.data = (__u32)(unsigned long)at, .data_end = (__u32)(unsigned long)at + length};
}

int host_parse(const __u8 *frame, __u32 length) {
  struct xdp_md ctx = place(frame, length < ROOM ? length : ROOM);
  struct unpin_tcp_state tcp = {0};
  struct tcp_options options = {0};
  struct packet pkt = {0};
  const int verdict = parse_packet(&ctx, &pkt);

  if (verdict != UNPIN_CONTINUE) return verdict;
  read_tcp_state(&ctx, &pkt, &tcp);
  find_tcp_option(&ctx, &pkt, TCPOPT_SACK_BLOCKS, &options);
  if (pkt.payload_offset + pkt.payload_length > length) abort();
  return verdict;
}

int host_follow_packet(struct unpin_follower *f, __u32 sequence, const __u8 *payload, __u32 length) {
  struct xdp_md ctx = place(payload, length);

  if (!http2_follows(f) || seq_before(http2_need(f), sequence) || !seq_before(http2_need(f), sequence + length))
    return 0;
  room.walk = (struct unpin_walk){.follower = *f, .sequence = sequence, .end = sequence + length};
  follow_packet(&ctx);
  *f = room.walk.follower;
  return 1;
}
