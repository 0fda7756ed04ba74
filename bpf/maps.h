/* SPDX-License-Identifier: GPL-2.0 */
/* Every map: what it answers, who writes, who reads. All are pinned by name, so that they outlive the agent. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"
#include "bpf/endpoint_filter.h"

/* Which virtual services exist.              agent writes; find_service() reads */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNPIN_MAX_SERVICES);
  __type(key, struct unpin_service_key);
  __type(value, struct unpin_service);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} services SEC(".maps");

/* What cannot be ours.                       agent writes; is_transit() reads */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct unpin_endpoint_filter);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} endpoints SEC(".maps");

/* Where a backend is, and whether it may be offered.   agent writes; steer.h reads */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNPIN_MAX_BACKENDS);
  __type(key, __u32);
  __type(value, struct unpin_backend);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} backends SEC(".maps");

/* How backends stand just now.               both write; steer.h reads */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNPIN_MAX_BACKENDS);
  __type(key, __u32);
  __type(value, struct unpin_standing);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} standings SEC(".maps");

/* When a service's next new connection is in time (ns, see admission.h).   data plane only */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNPIN_MAX_SERVICES);
  __type(key, __u32);
  __type(value, __u64);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} admissions SEC(".maps");

/* One lookup table (slot -> backend) a service, replaced whole, so that no packet sees half an update.
 *                                            agent writes; steer.h reads */
struct maglev_table {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNPIN_MAGLEV_SLOTS);
  __uint(map_flags, BPF_F_INNER_MAP); /* tables may differ in size */
  __type(key, __u32);
  __type(value, __u32);
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, UNPIN_MAX_SERVICES);
  __type(key, __u32);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
  __array(values, struct maglev_table);
} maglev_tables SEC(".maps");

/* Both directions of every established connection.     data plane inserts and updates;
 *                                            the agent reads (BPF_F_LOCK) and deletes what has expired */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNPIN_DEFAULT_FLOWS);
  __type(key, struct unpin_flow_key);
  __type(value, struct unpin_flow);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} flows SEC(".maps");

/* Both directions of connections still in their handshake: a flood evicts only its like.   data plane only */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, UNPIN_DEFAULT_HALF_OPEN);
  __type(key, struct unpin_flow_key);
  __type(value, struct unpin_half_open);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} half_open SEC(".maps");

/* Which backend a client's next connections go to.     add_pin writes; steer.h reserves and takes */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNPIN_MAX_PINNED_CLIENTS);
  __type(key, struct unpin_pin_key);
  __type(value, struct unpin_client_pins);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} pins SEC(".maps");

/* What the agent may change while packets flow.        agent writes; all read */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct unpin_controls);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} controls SEC(".maps");

/* How many packets met each verdict.                   conclude() writes; the agent reads */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, UNPIN_VERDICT_COUNT);
  __type(key, __u32);
  __type(value, __u64);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} verdict_counts SEC(".maps");

/* What happened (struct unpin_event).                  data plane writes; the agent consumes */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, UNPIN_EVENT_RING_BYTES);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} events SEC(".maps");

/* Payload of flows that are behind (struct unpin_capture).   data plane writes; the agent consumes */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, UNPIN_CAPTURE_RING_BYTES);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} captures SEC(".maps");

/* A walk over the frame headers of one packet (follow.h). */
struct unpin_walk {
  struct unpin_follower follower;
  struct unpin_follower at_cut; /* as it was at `cut` */
  __u32 sequence;               /* of the first payload byte */
  __u32 end;
  __u32 payload_offset;
  __u32 cut; /* the last boundary inside the packet, if has_cut */
  __u8 want_cut;
  __u8 has_cut;
};

/* Room to work in, one a CPU: too large for the stack, or too variable for the verifier to track there. */
struct unpin_scratch {
  struct unpin_walk walk;
  struct unpin_follower gap; /* start of the gap being captured */
  struct unpin_half_open c2s_half;
  struct unpin_half_open s2c_half;
  struct unpin_flow c2s;
  struct unpin_flow s2c;
};
/*                                            data plane only */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct unpin_scratch)); /* untyped: its flows' locks are not used here */
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} scratch SEC(".maps");

static __always_inline struct unpin_scratch *find_scratch(void) {
  __u32 zero = 0;

  return bpf_map_lookup_elem(&scratch, &zero);
}
