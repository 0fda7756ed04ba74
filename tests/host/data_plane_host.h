// SPDX-License-Identifier: Apache-2.0
// The data plane's parser and follower as ordinary functions, for the fuzzers.
#pragma once

#include "bpf/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses a frame and looks for TCP options in it. Returns the verdict. A read past its end hits a guard page. */
int host_parse(const __u8 *frame, __u32 length);

/* Follows one segment as the data plane does: walks [sequence, sequence + length) if it holds what the follower waits
 * for, in order. Returns 0 if it did not. */
int host_follow_packet(struct unpin_follower *f, __u32 sequence, const __u8 *payload, __u32 length);

#ifdef __cplusplus
}
#endif
