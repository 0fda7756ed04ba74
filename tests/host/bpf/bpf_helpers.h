/* SPDX-License-Identifier: Apache-2.0 */
/* Shadows libbpf's header by include order, so that the data plane's pure parts run as ordinary C under sanitizers.
 * Frames must lie below 4 GiB (struct xdp_md holds 32 bit pointers): data_plane_host.c maps them there. */
#pragma once

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#define SEC(name) __attribute__((unused))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[1]
#ifndef __always_inline /* the C library has one */
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#define LIBBPF_PIN_BY_NAME 1

struct xdp_md;

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 length);

static inline long host_loop(__u32 count, long (*step)(__u32, void *), void *context) {
  __u32 i;

  for (i = 0; i < count; i++)
    if (step(i, context)) return i + 1;
  return count;
}
#define bpf_loop(count, step, context, flags) host_loop(count, (long (*)(__u32, void *))(step), context)
