#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Interop client in Python grpcio: opens connections, runs one pattern on each, prints a Report as JSON."""

import argparse
import json
import random
import signal
import threading
import time
from pathlib import Path

import grpc

import echo_pb2
import echo_pb2_grpc
from payload import MAX_PAYLOAD, payload

PAUSE_S = 0.004
DEADLINE_S = 20
LISTED_FAILURES = 50


class Recorder:
    def __init__(self):
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._took_ms = []
        self._last = {}
        self.report = {"rpcs": 0, "corrupt": 0, "split_streams": 0, "failed": 0, "failures": [], "landings": []}

    def add(self, connection, begun, server="", error=None, corrupt=False, split=False):
        took_ms = (time.monotonic() - begun) * 1000
        with self._lock:
            self._took_ms.append(took_ms)
            self.report["rpcs"] += 1
            self.report["corrupt"] += corrupt or (error is not None and error.code() == grpc.StatusCode.DATA_LOSS)
            self.report["split_streams"] += split
            if error is not None:
                self._fail({"connection": connection, "at_s": begun - self._start, "took_ms": took_ms,
                            "code": error.code().name, "detail": error.details()})
            if server:
                self._land(connection, begun, server)

    def _fail(self, failure):
        self.report["failed"] += 1
        if len(self.report["failures"]) < LISTED_FAILURES:
            self.report["failures"].append(failure)

    def _land(self, connection, begun, server):
        last_begun, last_server = self._last.get(connection, (0, ""))
        if begun < last_begun:  # a long RPC ends after shorter ones that were begun later elsewhere
            return
        self._last[connection] = (begun, server)
        if server != last_server:
            self.report["landings"].append(
                {"connection": connection, "at_s": begun - self._start, "server": server})

    def finish(self):
        times = sorted(self._took_ms) or [0]
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1)):
            self.report[name] = times[int(share * (len(times) - 1))]
        return self.report


class Connection:
    def __init__(self, args, index, recorder):
        # Otherwise all channels to one target share one TCP connection.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 8 << 20)]
        if args.tls:
            certificate = Path(args.tls, "cert.pem").read_bytes()
            options.append(("grpc.ssl_target_name_override", "interop"))
            channel = grpc.secure_channel(args.target, grpc.ssl_channel_credentials(certificate), options)
        else:
            channel = grpc.insecure_channel(args.target, options)
        self._stub = echo_pb2_grpc.InteropStub(channel)
        self._index = index
        self._recorder = recorder
        self.random = random.Random(args.seed * 1000 + index)

    def _echo_request(self):
        seed = self.random.getrandbits(32)
        size = self.random.randint(1, 1 << self.random.randrange(16))
        return echo_pb2.EchoRequest(seed=seed, payload=payload(seed, size))

    def echo(self):
        request = self._echo_request()
        begun = time.monotonic()
        try:
            reply = self._stub.Echo(request, timeout=DEADLINE_S)
            self._recorder.add(self._index, begun, reply.server, corrupt=reply.payload != request.payload)
        except grpc.RpcError as error:
            self._recorder.add(self._index, begun, error=error)

    def stream(self, count, size, interval_ms):
        request = echo_pb2.StreamRequest(count=count, size=size, interval_ms=interval_ms,
                                         seed=self.random.getrandbits(32))
        begun = time.monotonic()
        server, error, corrupt, split, received = "", None, False, False, 0
        try:
            for chunk in self._stub.Stream(request, timeout=DEADLINE_S):
                server = server or chunk.server
                split = split or chunk.server != server
                corrupt = corrupt or chunk.payload != payload((request.seed + received) & 0xFFFFFFFF, size)
                received += 1
            corrupt = corrupt or received != count
        except grpc.RpcError as raised:
            error = raised
        self._recorder.add(self._index, begun, server, error, corrupt, split)


def actions(pattern, connection):
    """What is repeated on a connection, each in a thread of its own."""
    pick = connection.random
    if pattern == "stream":
        return [lambda: connection.stream(20, pick.randint(1, 20000), pick.randrange(3))]
    if pattern == "bulk":
        return [lambda: connection.stream(2, MAX_PAYLOAD, 0)]
    if pattern == "long":
        return [connection.echo, lambda: connection.stream(100, 1000, 20)]
    return [connection.echo]


def repeat(action, end, stop):
    while time.monotonic() < end and not stop.is_set():
        action()
        time.sleep(PAUSE_S)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--pattern", choices=["unary", "stream", "bulk", "long"], default="unary")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", metavar="DIR", help="where cert.pem is")
    args = parser.parse_args()

    stop = threading.Event()  # what is under way then still ends
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    recorder = Recorder()
    end = time.monotonic() + args.seconds
    threads = []
    for index in range(args.connections):
        connection = Connection(args, index, recorder)
        threads += [threading.Thread(target=repeat, args=(action, end, stop))
                    for action in actions(args.pattern, connection)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(recorder.finish()), flush=True)


if __name__ == "__main__":
    main()
