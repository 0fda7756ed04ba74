// SPDX-License-Identifier: Apache-2.0
// Both user-space compilers must accept the contract with every warning on; its own static_asserts do the rest.
#include "bpf/abi.h"
