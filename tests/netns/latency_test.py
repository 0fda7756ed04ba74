#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long after the command the GOAWAY arrives at the client: within 10 ms on an idle connection, within 50 ms on a busy
one. The command is the API call, the arrival is when the client has read the frame; medians are what is asserted."""

import statistics
import threading
import time
import unittest

# First: it says where the others are.
from scene import (ECHO, GOAWAY_PAYLOAD, STREAM, Admin, echo, open_h2, served_bed, wait_spliceable)
import echo_pb2

MOVES = 40


def move_and_time(admin, client):
    """Milliseconds from the command to the GOAWAY."""
    wait_spliceable(admin, client.local)
    # The call is made beside, so that its own answer does not delay the reading.
    begun = time.monotonic()
    caller = threading.Thread(target=admin.move, args=(client.local,))
    caller.start()
    arrived = client.wait_for_goaway()
    caller.join()
    return (arrived - begun) * 1000


def summary(name, times):
    ordered = sorted(times)
    print(f"{name}: command to GOAWAY over {len(times)} moves: median {statistics.median(times):.2f} ms, "
          f"p90 {ordered[int(0.9 * len(ordered))]:.2f}, worst {ordered[-1]:.2f}")
    return statistics.median(times)


class LatencyTest(unittest.TestCase):
    def measure(self, keep_busy):
        times = []
        with served_bed("lat", moves={"min_age": "50ms"}) as bed, Admin(bed.socket) as admin:
            for i in range(MOVES):
                client = open_h2(bed)
                echo(client, i)
                keep_busy(client)
                times.append(move_and_time(admin, client))
                self.assertEqual(client.goaways[0][1], GOAWAY_PAYLOAD)
                client.close()
        return times

    def test_idle(self):
        self.assertLessEqual(summary("idle", self.measure(lambda client: None)), 10)

    def test_busy_with_a_stream(self):
        request = echo_pb2.StreamRequest(count=100000, size=20000, interval_ms=1, seed=1)
        times = self.measure(lambda client: client.begin(STREAM, request.SerializeToString()))
        self.assertLessEqual(summary("20 kB messages, one a ms", times), 50)

    def test_busy_with_calls(self):
        def begin_calls(client):
            for _ in range(2000):
                client.begin(ECHO)
        self.assertLessEqual(summary("2000 calls under way", self.measure(begin_calls)), 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
