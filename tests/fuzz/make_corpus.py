#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus: well-formed frames and streams for the fuzzers to start from. Files are named by content."""
import hashlib
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def keep(folder, content):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    (HERE / folder / hashlib.sha1(content).hexdigest()[:12]).write_bytes(content)


def stream_seed(direction, cuts, payload, sequence=0xFFFFFFF0):
    keep("follow", struct.pack("<I", sequence) + bytes([direction, *cuts]) + payload)


def tcp_frame(payload=b"", options=b"", flags=0x10, protocol=6, fragment=0):
    tcp = struct.pack(">HHIIBBHHH", 4000, 80, 1, 2, (20 + len(options)) // 4 << 4, flags, 512, 0, 0) + options + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, fragment, 64, protocol, 0, b"\x0a\0\0\2", b"\x0a\x09\0\1")
    return b"\2" * 12 + b"\x08\0" + ip + tcp


server = (frame(4, 0, 0, b"\0\3\0\0\0\x64") + frame(1, 0, 1, b"h" * 20) + frame(9, 4, 1, b"c" * 5) +
          frame(0, 0, 1, b"d" * 300) + frame(1, 5, 1, b"t") + frame(3, 0, 3, b"\0\0\0\0") + frame(7, 0, 0, b"\0" * 8))
client = PREFACE + frame(4, 0, 0) + frame(1, 5, 1, b"h" * 30) + frame(1, 5, 3, b"h") + frame(6, 0, 0, b"p" * 8)
for cuts in ((0, 0, 0), (7, 8, 9), (255, 100, 3)):
    stream_seed(1, cuts, server)
    stream_seed(0, cuts, client)
stream_seed(0, (0, 1, 2), b"GET / HTTP/1.1\r\n\r\n")
stream_seed(0, (3, 1, 2), b"\x16\x03\x01\x02\x00\x01\x00")
timestamps = b"\1\1\x08\x0a" + b"\0\0\0\1\0\0\0\2"
sack = b"\1\1\5\x12" + struct.pack(">IIII", 100, 200, 300, 400)
for content in (tcp_frame(), tcp_frame(b"x" * 50, timestamps), tcp_frame(b"", timestamps + sack),
                tcp_frame(protocol=17), tcp_frame(fragment=0x2000), tcp_frame()[:30], tcp_frame(b"", b"\x08\x0a" + b"\0" * 10)):
    keep("packet", content)
