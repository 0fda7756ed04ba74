/* SPDX-License-Identifier: GPL-2.0 */
/* Which service is a packet of no known connection addressed to? */
#pragma once

#include "bpf/maps.h"
#include "bpf/packet.h"

static __always_inline const struct unpin_service *find_service(const struct packet *pkt) {
  struct unpin_service_key key = {
      .address = pkt->key.destination,
      .port = pkt->key.destination_port,
      .protocol = IPPROTO_TCP,
  };

  return bpf_map_lookup_elem(&services, &key);
}
