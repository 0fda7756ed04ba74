/* SPDX-License-Identifier: GPL-2.0 */
/* Which service is a packet of no known connection addressed to? */
#pragma once

#include "bpf/endpoint_filter.h"
#include "bpf/maps.h"
#include "bpf/packet.h"

/* Neither to a service nor from a backend, so of no connection of ours. */
static __always_inline int is_transit(const struct packet *pkt) {
  __u32 zero = 0;
  const struct unpin_endpoint_filter *filter = bpf_map_lookup_elem(&endpoints, &zero);

  return filter && !has_endpoint(filter, pkt->key.destination, pkt->key.destination_port) &&
         !has_endpoint(filter, pkt->key.source, pkt->key.source_port);
}

static __always_inline const struct unpin_service *find_service(const struct packet *pkt) {
  struct unpin_service_key key = {
      .address = pkt->key.destination,
      .port = pkt->key.destination_port,
      .protocol = IPPROTO_TCP,
  };

  return bpf_map_lookup_elem(&services, &key);
}
