# SPDX-License-Identifier: Apache-2.0
"""A client of one HTTP/2 connection that does only what it is told: it never reconnects, and shows every frame.

Speaks gRPC unary calls, and server-streaming ones of messages that the caller reads frame by frame.
"""

import ctypes
import os
import socket
import struct
import time
from contextlib import contextmanager

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CLONE_NEWNET = 0x40000000
# DESIGN section 11, RFC 9113 section 6.8: last stream id 2^31 - 1, NO_ERROR.
GOAWAY_PAYLOAD = bytes.fromhex("7fffffff00000000")


@contextmanager
def in_namespace(namespace):
    """Sockets made inside belong to that network namespace. Only this thread enters it."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter namespace {namespace}")
        yield
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(here)
        os.close(there)


def connect(namespace, address, port):
    with in_namespace(namespace):
        return socket.create_connection((address, port), 10)


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def _literal(name, value):
    # RFC 7541 section 6.2.2: literal header field without indexing, new name; all lengths below 127.
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class H2Client:
    def __init__(self, connected):
        self._socket = connected
        self._buffer = b""
        self._stream = -1
        self.goaways = []  # (time.monotonic() of arrival, payload)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Initial window and connection window as large as they can be: flow control plays no part.
        settings = struct.pack("!HI", 4, 0x7FFFFFFF)
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings)
                  + frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 0x7FFFFFFF - 65535)))

    @property
    def local(self):
        return "%s:%d" % self._socket.getsockname()

    def send(self, data):
        self._socket.sendall(data)

    def close(self):
        self._socket.close()

    def begin(self, path, message=b""):
        """Sends one gRPC request and returns its stream id."""
        self._stream += 2
        headers = b"".join(_literal(*pair) for pair in (
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "interop"),
            ("content-type", "application/grpc"), ("te", "trailers")))
        body = b"\0" + struct.pack("!I", len(message)) + message
        self.send(frame(HEADERS, END_HEADERS, self._stream, headers) + frame(DATA, END_STREAM, self._stream, body))
        return self._stream

    def call(self, path, message=b"", timeout=10):
        """One unary call; returns the reply's message. EOFError if the server ends the connection instead."""
        stream = self.begin(path, message)
        body = b""
        for kind, flags, of, payload in self.frames(timeout):
            if of != stream:
                continue
            if kind == RST_STREAM:
                raise ConnectionError(f"stream {stream} was reset")
            if kind == DATA:
                body += payload
            if flags & END_STREAM and kind in (DATA, HEADERS):
                return body[5:]

    def wait_for_goaway(self, timeout=10):
        """Reads until the first GOAWAY has come; returns the time.monotonic() of its arrival."""
        frames = self.frames(timeout)
        while not self.goaways:
            next(frames)
        return self.goaways[0][0]

    def frames(self, timeout=10):
        """Every frame as (type, flags, stream, payload); answers SETTINGS and PING, notes GOAWAYs."""
        while True:
            header = self._read(9, timeout)
            length = int.from_bytes(header[:3], "big")
            kind, flags, stream = struct.unpack("!BBI", header[3:])
            payload = self._read(length, timeout)
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, payload))
            elif kind == GOAWAY:
                self.goaways.append((time.monotonic(), payload))
            yield kind, flags, stream, payload

    def _read(self, size, timeout):
        self._socket.settimeout(timeout)
        while len(self._buffer) < size:
            data = self._socket.recv(1 << 16)
            if not data:
                raise EOFError("the connection has ended")
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken
