# SPDX-License-Identifier: Apache-2.0
"""unpind's admin API for the tests, through the stubs in the build tree: faster than a CLI process a call."""

import sys

import grpc

from languages import STUBS

sys.path.insert(0, str(STUBS))

from unpin.v1 import admin_pb2  # noqa: E402
from unpin.v1 import admin_pb2_grpc  # noqa: E402

DEADLINE_S = 10
Move = admin_pb2.Move
ENDED = (Move.RECONNECTED, Move.EXPIRED, Move.REFUSED)


class Admin:
    def __init__(self, socket):
        self._channel = grpc.insecure_channel(f"unix:{socket}")
        self.stub = admin_pb2_grpc.AdminStub(self._channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    def connections(self, **filters):
        connections, token = [], ""
        while True:
            request = admin_pb2.ListConnectionsRequest(page_token=token, **filters)
            answer = self.stub.ListConnections(request, timeout=DEADLINE_S)
            connections += answer.connections
            token = answer.next_page_token
            if not token:
                return connections

    def move(self, client, service="", target="", wait_s=0):
        """Returns the Move; grpc.RpcError with the reason if it is refused."""
        request = admin_pb2.MoveConnectionRequest(client=client, service=service, target=target)
        if wait_s:
            request.wait.FromNanoseconds(int(wait_s * 1e9))
        return self.stub.MoveConnection(request, timeout=DEADLINE_S + wait_s)

    def moves(self, limit=10000):
        return self.stub.ListMoves(admin_pb2.ListMovesRequest(limit=limit), timeout=DEADLINE_S).moves

    def counters(self):
        """Name -> value, verdicts and the agent's own together."""
        answer = self.stub.GetCounters(admin_pb2.GetCountersRequest(), timeout=DEADLINE_S)
        return {counter.name: counter.value for counter in [*answer.verdicts, *answer.agent]}


def seconds(duration):
    return duration.seconds + duration.nanos / 1e9


def milliseconds_between(start, end):
    return (end.ToNanoseconds() - start.ToNanoseconds()) / 1e6
