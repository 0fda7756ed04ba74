/* SPDX-License-Identifier: GPL-2.0 */
/* Where the compiler knows a bound that the verifier cannot see. */
#pragma once

#include <linux/types.h>

/* `value & mask`, kept even if the compiler can prove that it changes nothing. */
static inline __attribute__((always_inline)) __u32 masked(__u32 value, __u32 mask) {
  asm volatile("" : "+r"(value));
  return value & mask;
}

/* `value - 1`, opaque to the compiler: a bound tested on it also shows Linux 6.1 that `value` is not 0. */
static inline __attribute__((always_inline)) __u32 one_less(__u32 value) {
  value -= 1;
  asm volatile("" : "+r"(value));
  return value;
}
