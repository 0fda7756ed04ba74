/* SPDX-License-Identifier: GPL-2.0 */
/* What the agent asks of the flow table, done under the flow's own lock. */
#include "bpf/maps.h"

SEC("syscall")
int arm_goaway(struct unpin_arm_args *args) {
  args->refusal = UNPIN_REFUSAL_NOT_FOUND;
  return 0;
}

SEC("syscall")
int disarm_goaway(struct unpin_arm_args *args) {
  args->refusal = UNPIN_REFUSAL_NOT_FOUND;
  return 0;
}

SEC("syscall")
int restore_follower(struct unpin_restore_args *args) {
  args->result = UNPIN_RESTORE_STALE;
  return 0;
}

SEC("syscall")
int add_pin(struct unpin_add_pin_args *args) {
  args->full = 2;
  return 0;
}

SEC("syscall")
int remove_pin(struct unpin_add_pin_args *args) {
  args->full = 0;
  return 0;
}

SEC("syscall")
int expire_flows(struct unpin_expire_args *args) {
  args->expired = 0;
  return 0;
}

char LICENSE[] SEC("license") = "GPL";
