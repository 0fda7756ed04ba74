# SPDX-License-Identifier: Apache-2.0
"""The pseudo-random payloads of echo.proto."""

import struct

MAX_PAYLOAD = 1048576


def _make_pool():
    words = []
    word = 2463534242
    for _ in range(1114112 // 4):
        word ^= word << 13 & 0xFFFFFFFF
        word ^= word >> 17
        word ^= word << 5 & 0xFFFFFFFF
        words.append(word)
    return struct.pack(f"<{len(words)}I", *words)


_POOL = _make_pool()


def payload(seed, size):
    offset = (seed * 2654435761 & 0xFFFFFFFF) >> 16
    return _POOL[offset:offset + size]
