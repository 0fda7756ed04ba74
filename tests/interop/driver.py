# SPDX-License-Identifier: Apache-2.0
"""Moves connections under a running client, and measures what became of them."""

import math
import random
import time
from collections import Counter

import grpc

from admin import ENDED, Move, milliseconds_between, seconds

PERIOD_S = 0.2
SETTLE_S = 8.0
# A connection may be between states just now; the next tick tries again.
PASSING_REASONS = ("out of sync (recovering)", "protocol not known yet", "no response yet", "too young", "closing",
                   "connection closed")


class Driver:
    """`min_age_s`: the connection's age from which unpind accepts a move."""

    def __init__(self, admin, min_age_s, seed):
        self._admin = admin
        self._min_age_s = min_age_s
        self._random = random.Random(seed)
        self._moved = set()  # client address:port; a connection is moved once
        self.ticks = 0
        self.refusals = Counter()

    def run(self, duration_s):
        """Every 200 ms moves one connection that is old enough and was not moved yet."""
        start = time.monotonic()
        while time.monotonic() < start + duration_s:
            self.ticks += 1
            self._move_one()
            time.sleep(max(0, start + self.ticks * PERIOD_S - time.monotonic()))

    def _move_one(self):
        old = [c.client for c in self._unmoved() if seconds(c.age) >= self._min_age_s]
        if not old:
            return
        client = self._random.choice(old)
        try:
            self._admin.move(client)
            self._moved.add(client)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:  # it has closed since it was listed
                return
            self.refusals[f"{error.code().name}: {error.details()}"] += 1

    def unexpected_refusals(self):
        return {reason: count for reason, count in self.refusals.items()
                if not any(passing in reason for passing in PASSING_REASONS)}

    def _unmoved(self):
        return [c for c in self._admin.connections() if c.client not in self._moved]

    def spliceable(self):
        """(flows, of them spliceable) of the connections never moved, while the client is still at work.

        A connection counts as spliceable if it is so at any moment within a bounded wait: one whose lost bytes are
        just being recovered is not out of sync for good (DESIGN section 5).
        """
        seen = set()
        deadline = time.monotonic() + SETTLE_S
        while True:
            alive = self._unmoved_alive()
            flows = {c.client for c in alive}
            seen |= {c.client for c in alive if c.spliceable}
            if (flows and flows <= seen) or time.monotonic() > deadline:
                return len(flows), len(flows & seen)
            time.sleep(0.05)

    def _unmoved_alive(self):
        return [c for c in self._unmoved() if c.not_spliceable != "closing"]

    def moves(self):
        """The moves, once every one has ended, or after a bounded wait. Those refused before anything was sent, as when
        the connection was out of sync at first, count as refusals like the others."""
        moves = self._ended_moves()
        refused = [m for m in moves if m.state == Move.REFUSED and not m.HasField("sent")]
        self.refusals.update(m.detail for m in refused)
        return [m for m in moves if m not in refused]

    def _ended_moves(self):
        deadline = time.monotonic() + SETTLE_S
        while True:
            moves = self._admin.moves()
            if all(move.state in ENDED for move in moves) or time.monotonic() > deadline:
                return moves
            time.sleep(0.05)


def quantile(values, share):
    ordered = sorted(values)
    return round(ordered[int(share * (len(ordered) - 1))], 2) if ordered else None


def count_alone(moves):
    """Moves that reconnected while no other move's pin stood."""
    spans = [(m.planned.ToNanoseconds(), m.reconnected.ToNanoseconds() if m.HasField("reconnected") else math.inf)
             for m in moves if m.state != Move.REFUSED]
    return sum(end < math.inf and sum(other[0] <= end and begin <= other[1] for other in spans) == 1
               for begin, end in spans)


def summarize(moves):
    """The figures of a row that come from unpind's list of moves."""
    acknowledged = [m for m in moves if m.HasField("acknowledged")]
    reconnected = [m for m in moves if m.HasField("reconnected")]
    to_ack = [milliseconds_between(m.sent, m.acknowledged) for m in acknowledged]
    to_reconnect = [milliseconds_between(m.sent, m.reconnected) for m in reconnected]
    to_commit = [milliseconds_between(m.planned, m.sent) for m in moves if m.HasField("sent")]
    figures = {"moves": len(moves), "acknowledged": len(acknowledged), "reconnected": len(reconnected),
               "reconnected_alone": count_alone(moves)}
    for name, values in (("commit", to_commit), ("ack", to_ack), ("reconnect", to_reconnect)):
        figures[f"{name}_p50_ms"] = quantile(values, 0.5)
        figures[f"{name}_p99_ms"] = quantile(values, 0.99)
    figures["unfinished"] = [f"{m.client}: {m.State.Name(m.state)} {m.detail}" for m in moves
                             if not m.HasField("acknowledged")][:10]
    return figures
