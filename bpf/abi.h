/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The contract between bpf/ and userspace/datapath/: plain data, nothing else.
 * Both compilers read this one file, so the two sides cannot drift.
 * Rules: fixed-width fields, padding spelled out, every size asserted. Byte order is in the type:
 * __be16 and __be32 are as on the wire, all else (sequence numbers too) is in host order.
 * Times are nanoseconds of CLOCK_MONOTONIC. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

enum unpin_limits {
  UNPIN_MAX_SERVICES = 1024,
  UNPIN_MAX_BACKENDS = 16384,
  UNPIN_MAX_SNAT_ADDRESSES = 16,
  UNPIN_MAX_PINNED_CLIENTS = 16384,
  UNPIN_PINS_PER_CLIENT = 16,
  UNPIN_DEFAULT_FLOWS = 262144,    /* two a connection; the agent may set another size before load */
  UNPIN_DEFAULT_HALF_OPEN = 131072, /* two a connection */
  UNPIN_MAGLEV_SLOTS = 65537,      /* prime, Maglev paper section 3.4; a service may use fewer */
  UNPIN_GOAWAY_LENGTH = 17,        /* RFC 9113 section 6.8: 9 byte header, 8 byte payload */
  UNPIN_CAPTURE_BYTES = 1460,      /* TCP payload a capture record holds */
  UNPIN_CAPTURES_PER_GAP = 4096,   /* records one gap may take before its flow counts as lost */
  UNPIN_EVENT_RING_BYTES = 1 << 20,
  UNPIN_CAPTURE_RING_BYTES = 1 << 25,
};

/* ---- who a packet belongs to ---- */

/* One direction of a TCP connection over IPv4, as the arriving packet names it. */
struct unpin_flow_key {
  __be32 source;
  __be32 destination;
  __be16 source_port;
  __be16 destination_port;
};
static_assert(sizeof(struct unpin_flow_key) == 12, "unpin_flow_key");

struct unpin_service_key {
  __be32 address;
  __be16 port;
  __u8 protocol; /* IPPROTO_TCP */
  __u8 pad;
};
static_assert(sizeof(struct unpin_service_key) == 8, "unpin_service_key");

enum unpin_service_flags {
  UNPIN_SERVICE_SNAT = 1 << 0,        /* source becomes one of the gateway's addresses */
  UNPIN_SERVICE_SOURCE_HASH = 1 << 1, /* Maglev hashes the client's address only (affinity) */
};

struct unpin_service {
  __u32 id;    /* index into maglev_tables; < UNPIN_MAX_SERVICES */
  __u32 flags; /* enum unpin_service_flags */
  __u32 slots; /* entries of its Maglev table; 0: no backend is up */
  __u32 new_per_second; /* new connections; 0: no limit */
};
static_assert(sizeof(struct unpin_service) == 16, "unpin_service");

enum unpin_backend_state {
  UNPIN_BACKEND_FREE,     /* the slot is unused */
  UNPIN_BACKEND_SERVING,  /* may be offered by table and pin */
  UNPIN_BACKEND_DRAINING, /* keeps its connections, gets no new ones */
  UNPIN_BACKEND_DOWN,     /* offered to nobody */
};

struct unpin_backend {
  __be32 address;
  __be16 port;
  __u16 state; /* enum unpin_backend_state */
  __u32 service;
  __u32 pad;
};
static_assert(sizeof(struct unpin_backend) == 16, "unpin_backend");

/* How a backend stands just now, beyond what the agent has decided. */
struct unpin_standing {
  __u64 suspect_until_ns; /* data plane: it broke or refused a connection; until then others come first */
  __u32 is_capped;        /* agent: `room` holds */
  __u32 room;             /* new connections it may still take; the data plane counts down, the agent sets it anew */
};
static_assert(sizeof(struct unpin_standing) == 16, "unpin_standing");

/* ---- what is done to a packet ---- */

/* All that rewriting needs, computed once a connection. */
struct unpin_rewrite {
  __be32 source;
  __be32 destination;
  __be16 source_port;
  __be16 destination_port;
  __u16 ip_delta;  /* RFC 1624: added, folded, to the complemented IP checksum (TTL included) */
  __u16 tcp_delta; /* likewise for the TCP checksum */
  __u8 destination_mac[6];
  __u8 source_mac[6];
  __u32 egress_ifindex;
  __u32 route_generation; /* of unpin_controls, when the next hop was looked up */
};
static_assert(sizeof(struct unpin_rewrite) == 36, "unpin_rewrite");

enum unpin_direction {
  UNPIN_C2S, /* client to server */
  UNPIN_S2C, /* server to client */
};

/* What a direction carries, judged by its first bytes. */
enum unpin_protocol {
  UNPIN_PROTOCOL_UNKNOWN, /* not enough bytes yet */
  UNPIN_PROTOCOL_H2,      /* cleartext HTTP/2: preface (c2s) or SETTINGS first (s2c) */
  UNPIN_PROTOCOL_TLS,
  UNPIN_PROTOCOL_HTTP1,
  UNPIN_PROTOCOL_OPAQUE,
};

enum unpin_follower_flags {
  UNPIN_FOLLOWER_IN_HEADER_BLOCK = 1 << 0, /* HEADERS or PUSH_PROMISE without END_HEADERS is open */
  UNPIN_FOLLOWER_SETTINGS_SEEN = 1 << 1,
  UNPIN_FOLLOWER_GOAWAY_SEEN = 1 << 2, /* the endpoint itself said goodbye */
  UNPIN_FOLLOWER_LOST = 1 << 3,        /* out of sync for good: no room to keep the bytes */
  UNPIN_FOLLOWER_PREFACE = 1 << 4,     /* still inside the client connection preface */
};

/* Where one direction's HTTP/2 frames stand. Sequence numbers are the sender's own (server space for s2c). */
struct unpin_follower {
  __u32 next_header;   /* first byte of the next frame header (of the preface, while inside it) */
  __u32 highest_seen;  /* one past the highest byte seen */
  __u32 generation;    /* grows with every change of this struct: optimistic concurrency */
  __u32 epoch;         /* 0: in sync. Else the gap the agent is asked to fill, globally unique */
  __u32 last_stream;   /* c2s: highest id that a HEADERS frame named. s2c: the stream ended last */
  __u32 streams_ended; /* s2c: END_STREAM, or RST_STREAM without it. c2s: RST_STREAM */
  __u8 partial[8];     /* the first bytes of a header that straddles packets */
  __u8 partial_length; /* 0..8; inside the preface: bytes of it matched, 0..23 */
  __u8 flags;          /* enum unpin_follower_flags */
  __u8 protocol;       /* enum unpin_protocol */
  __u8 direction;      /* enum unpin_direction */
};
static_assert(sizeof(struct unpin_follower) == 36, "unpin_follower");

enum unpin_splice_state {
  UNPIN_SPLICE_NONE,
  UNPIN_SPLICE_ARMED,        /* the next packet that ends at a boundary commits */
  UNPIN_SPLICE_ARMED_TRIM,   /* likewise, and a packet with a boundary inside is cut there */
  UNPIN_SPLICE_COMMITTED,    /* translation is on, the client has not yet acknowledged the GOAWAY */
  UNPIN_SPLICE_ACKNOWLEDGED, /* the client has it */
  UNPIN_SPLICE_PAST,         /* acknowledged, and 2^30 bytes ago: every number is beyond it */
};

/* Held by both directions of a connection; the c2s copy is written first, each in one store. */
struct unpin_splice {
  __u32 boundary; /* server space; GOAWAY is at [boundary, boundary + 17) of client space */
  __u32 state;    /* enum unpin_splice_state */
};
static_assert(sizeof(struct unpin_splice) == 8, "unpin_splice");

/* The newest TCP header fields of one direction, as its sender wrote them. */
struct unpin_tcp_state {
  __u32 ack;
  __u32 tsval; /* RFC 7323; 0 with has_timestamp unset */
  __u32 tsecr;
  __u16 window; /* unscaled, as in the header */
  __u8 has_timestamp;
  __u8 pad;
};
static_assert(sizeof(struct unpin_tcp_state) == 16, "unpin_tcp_state");

enum unpin_flow_flags {
  UNPIN_FLOW_FIN = 1 << 0, /* this direction sent FIN */
  UNPIN_FLOW_RST = 1 << 1, /* this direction sent RST */
  UNPIN_FLOW_ORPHAN = 1 << 2, /* s2c: its client opened a new connection from the same port; keeps the SNAT port quiet */
  UNPIN_FLOW_ABANDONED = 1 << 3, /* its backend is dead: either end is answered with RST */
};

/* One direction of an established connection. The kernel puts the key just before it: 64 bytes for every packet come
 * first, then 64 for those with payload and those of the server, then what only opening, closing and moving touch. */
struct unpin_flow {
  struct bpf_spin_lock lock; /* guards follower, tcp, splice */
  __u8 direction;            /* enum unpin_direction */
  __u8 flags;                /* enum unpin_flow_flags */
  __u16 capture_budget;      /* captures this gap may still take; 0: lost */
  struct unpin_rewrite rewrite;
  __u32 hole_reports;         /* c2s: client ACKs that showed a hole at the boundary */
  struct unpin_splice splice; /* 8-aligned: read and written as one word */
  __u64 last_seen_ns;
  __u64 bytes; /* of TCP payload */
  struct unpin_tcp_state tcp;
  struct unpin_follower follower;
  __u32 service;
  struct unpin_flow_key reverse; /* the key of the other direction */
  __u32 backend;
  __u64 created_ns;
};
static_assert(sizeof(struct unpin_flow) == 152, "unpin_flow");

/* One direction of a connection whose handshake is not yet complete. */
struct unpin_half_open {
  struct unpin_rewrite rewrite;
  struct unpin_flow_key reverse;
  __u32 service;
  __u32 backend;
  __u32 client_isn;
  __u32 server_isn;     /* valid once SYN_ACK_SEEN */
  __u32 move;           /* the move whose pin chose the backend; 0: none */
  __u8 direction;       /* enum unpin_direction */
  __u8 syn_ack_seen;
  __u8 data_in_syn;     /* TCP Fast Open: such a connection is not followed */
  __u8 pad[1];
  __u64 created_ns;
};
static_assert(sizeof(struct unpin_half_open) == 80, "unpin_half_open");

/* ---- pins: the next connection from this client to this service goes to that backend ---- */

struct unpin_pin_key {
  __u32 service;
  __be32 client;
};
static_assert(sizeof(struct unpin_pin_key) == 8, "unpin_pin_key");

struct unpin_pin {
  __u64 expires_ns;
  __u64 reserved_until_ns; /* a SYN has been steered by it and may yet complete */
  __u32 backend;
  __u32 move; /* 0: the slot is free */
};
static_assert(sizeof(struct unpin_pin) == 24, "unpin_pin");

struct unpin_client_pins {
  struct bpf_spin_lock lock;
  __u32 pad;
  struct unpin_pin pins[UNPIN_PINS_PER_CLIENT];
};
static_assert(sizeof(struct unpin_client_pins) == 392, "unpin_client_pins");

/* ---- what the agent may change while packets flow ---- */

enum unpin_unknown_tcp {
  UNPIN_UNKNOWN_RESET, /* mid-stream TCP of no known connection: RST to the client (default) */
  UNPIN_UNKNOWN_DROP,
};

struct unpin_controls {
  __u32 route_generation; /* raised when a route, neighbour or link changed: next hops are looked up anew */
  __u32 event_mask;       /* 1 << enum unpin_event_type: which events are sent */
  __u32 unknown_tcp;      /* enum unpin_unknown_tcp */
  __u16 snat_port_min;    /* inclusive */
  __u16 snat_port_max;    /* inclusive */
  __u32 snat_count;
  __be32 snat_addresses[UNPIN_MAX_SNAT_ADDRESSES];
};
static_assert(sizeof(struct unpin_controls) == 84, "unpin_controls");

/* ---- what the data plane tells the agent ---- */

enum unpin_event_type {
  UNPIN_EVENT_OPENED,       /* handshake complete; move names the move whose pin chose the backend */
  UNPIN_EVENT_CLOSED,       /* RST, or FIN both ways */
  UNPIN_EVENT_COMMITTED,    /* an armed flow has committed at sequence: emit the GOAWAY now */
  UNPIN_EVENT_ACKNOWLEDGED, /* the client's ACK has passed the GOAWAY */
  UNPIN_EVENT_HOLE,         /* the client reports a hole at the boundary: resend now */
  UNPIN_EVENT_NO_NEIGHBOR,  /* no next hop towards backend is known: resolve it */
  UNPIN_EVENT_SUSPECT,      /* backend broke or refused a connection: probe it */
};

struct unpin_event {
  __u64 time_ns;
  __u32 type; /* enum unpin_event_type */
  __u32 service;
  __u32 backend;
  __u32 move;
  __u32 sequence; /* COMMITTED, ACKNOWLEDGED, HOLE: the boundary */
  struct unpin_flow_key s2c; /* NO_NEIGHBOR, SUSPECT: unset */
  struct unpin_flow_key c2s;
  __u32 pad;
};
static_assert(sizeof(struct unpin_event) == 56, "unpin_event");

/* Payload of a flow that is behind, so that the agent can follow where the data plane could not. Every record
 * carries the state in which the gap began: the order of records does not matter. */
struct unpin_capture {
  struct unpin_flow_key key;
  struct unpin_follower start; /* with the epoch of the gap */
  __u32 sequence;              /* of bytes[0] */
  __u16 length;
  __u8 direction;
  __u8 pad;
  __u8 bytes[UNPIN_CAPTURE_BYTES];
};
static_assert(sizeof(struct unpin_capture) == 1516, "unpin_capture");

/* ---- programs the agent runs (goaway.bpf.c, by BPF_PROG_TEST_RUN) ----
 * They are XDP programs whose frame is the argument struct, read and written: Linux 6.1 allows no spin lock in
 * SEC("syscall") programs. */

/* Why a connection cannot be moved; 0 when it can. */
enum unpin_refusal {
  UNPIN_REFUSAL_NONE,
  UNPIN_REFUSAL_NOT_FOUND,
  UNPIN_REFUSAL_UNDECIDED,     /* too few bytes to know the protocol */
  UNPIN_REFUSAL_TLS,
  UNPIN_REFUSAL_HTTP1,
  UNPIN_REFUSAL_OPAQUE,
  UNPIN_REFUSAL_TOO_YOUNG,
  UNPIN_REFUSAL_NO_RESPONSE,   /* no response has completed yet */
  UNPIN_REFUSAL_CLOSING,       /* FIN or RST seen */
  UNPIN_REFUSAL_SERVER_GOAWAY, /* the server itself said goodbye */
  UNPIN_REFUSAL_ALREADY_MOVED, /* one GOAWAY a connection */
  UNPIN_REFUSAL_BEHIND,        /* out of sync just now; recovery is under way */
  UNPIN_REFUSAL_LOST,          /* out of sync for good */
  UNPIN_REFUSAL_COUNT,
};

/* arm_goaway: commit at once if the connection is idle at a boundary, else arm it. */
struct unpin_arm_args {
  struct unpin_flow_key s2c;
  __u32 allow_trim; /* in: cut a packet at a boundary inside it, if no packet ends at one */
  __u64 min_age_ns; /* in */
  __u32 refusal;    /* out: enum unpin_refusal */
  __u32 state;      /* out: enum unpin_splice_state */
  __u32 boundary;   /* out, once committed */
  __u32 pad;
};
static_assert(sizeof(struct unpin_arm_args) == 40, "unpin_arm_args");

/* disarm_goaway: take an ARMED flow back to NONE. Uses s2c; out: state (COMMITTED: it was too late). */

/* abandon_connection: answer both ends with RST from now on. Uses s2c; out: refusal (NOT_FOUND, or CLOSING: it was
 * closed already). */

enum unpin_restore_result {
  UNPIN_RESTORE_DONE,
  UNPIN_RESTORE_STALE,   /* another epoch, or gone: forget the gap */
  UNPIN_RESTORE_MISSING, /* bytes beyond highest_seen are still on their way: try again with them */
};

/* restore_follower: hand back the state followed in user space. */
struct unpin_restore_args {
  struct unpin_flow_key key;
  struct unpin_follower follower; /* in: the new state, epoch as captured */
  __u32 give_up;                  /* in: mark the flow lost instead */
  __u32 result;                   /* out: enum unpin_restore_result */
  __u32 highest_seen;             /* out */
};
static_assert(sizeof(struct unpin_restore_args) == 60, "unpin_restore_args");

/* add_pin: put a pin into a free or expired slot of the client. */
struct unpin_add_pin_args {
  struct unpin_pin_key key;
  struct unpin_pin pin;
  __u32 full; /* out: 1 if the client has no free slot, 2 if the table has none */
  __u32 pad;
};
static_assert(sizeof(struct unpin_add_pin_args) == 40, "unpin_add_pin_args");

/* remove_pin: uses key and pin.move. */

/* ---- verdicts ---- */

/* What the data plane did with a packet, and why. Each value but CONTINUE is a counter an operator sees under this
 * name. Grouped by action, in this order; xdp_action() relies on it. */
enum unpin_verdict {
  UNPIN_CONTINUE, /* undecided: run the next stage */

  UNPIN_PASS_NOT_IPV4,
  UNPIN_PASS_NOT_TCP,
  UNPIN_PASS_FRAGMENT, /* not addressed to a service */
  UNPIN_PASS_TRUNCATED,
  UNPIN_PASS_NO_SERVICE,

  UNPIN_FORWARD_C2S, /* first of the forwarding verdicts */
  UNPIN_FORWARD_S2C,
  UNPIN_FORWARD_SPLICED,   /* either direction, numbers translated */
  UNPIN_FORWARD_TRIMMED,   /* cut at the boundary */
  UNPIN_FORWARD_SYN,
  UNPIN_FORWARD_SYN_RETRY, /* SYN of a connection already steered */
  UNPIN_FORWARD_SYN_ACK,
  UNPIN_FORWARD_OPENED,    /* the client's first ACK: now an established connection */

  UNPIN_REPLY_RESET_UNKNOWN, /* first of the replies: mid-stream, no such connection */
  UNPIN_REPLY_RESET_TABLE_FULL,
  UNPIN_REPLY_RESET_NO_BACKEND,
  UNPIN_REPLY_RESET_BACKENDS_FULL, /* every backend that is up has as many connections as it may */
  UNPIN_REPLY_RESET_OVER_RATE,     /* the service has had its new connections of this second */
  UNPIN_REPLY_RESET_ABANDONED,     /* the connection's backend is dead */

  UNPIN_DROP_TTL, /* first of the drops */
  UNPIN_DROP_FRAGMENT,
  UNPIN_DROP_NO_PORT, /* every SNAT port towards this backend is taken */
  UNPIN_DROP_NO_NEIGHBOR,
  UNPIN_DROP_UNKNOWN,     /* mid-stream, no such connection, and nobody to reset */
  UNPIN_DROP_HALF_OPEN,   /* an ACK that does not complete the handshake */
  UNPIN_DROP_STRADDLE,    /* could not be cut at the boundary */
  UNPIN_DROP_INTERNAL,    /* a map operation failed that should not */
  UNPIN_VERDICT_COUNT,
};
