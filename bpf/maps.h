/* SPDX-License-Identifier: GPL-2.0 */
/* Every map: what it answers, who writes, who reads. All are pinned by name, so that they outlive the agent. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"

/* Which virtual services exist.              agent writes; find_service() reads */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, UNPIN_MAX_SERVICES);
  __type(key, struct unpin_service_key);
  __type(value, struct unpin_service);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} services SEC(".maps");

/* Where a backend is, and whether it may be offered.   agent writes; steer.h reads */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, UNPIN_MAX_BACKENDS);
  __type(key, __u32);
  __type(value, struct unpin_backend);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} backends SEC(".maps");

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

/* Both directions of every established connection.     data plane inserts and updates, expire_flows deletes;
 *                                            the agent reads (BPF_F_LOCK) */
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

/* Room to build a new connection in: too large for the stack.   data plane only */
struct unpin_new_connection {
  struct unpin_flow c2s;
  struct unpin_flow s2c;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct unpin_new_connection);
  __uint(pinning, LIBBPF_PIN_BY_NAME);
} scratch SEC(".maps");
