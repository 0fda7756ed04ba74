#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of unpind under load, and a new one: no RPC fails, counters continue, GOAWAYs under way are finished."""

import json
import signal
import time
import unittest

import grpc

# First: it says where the others are.
from scene import GOAWAY_PAYLOAD, Admin, echo, open_h2, restart_agent, served_bed, start_client, wait_spliceable, wait_until
from driver import Driver

PERFECT = ["--loss", "0", "--late", "0"]


def forwarded(counters):
    return sum(value for name, value in counters.items() if "forward" in name.lower())


class AgentDeathTest(unittest.TestCase):
    def assert_unharmed(self, client):
        self.assertEqual(client.wait(60), 0, client.stderr)
        report = json.loads(client.stdout)
        self.assertEqual((report["failed"], report["corrupt"], report["split_streams"]), (0, 0, 0), report["failures"])
        return report

    def test_killed_under_load(self):
        with served_bed("die", backends=3) as bed:
            clients = [start_client(bed, language, "--pattern", pattern, "--connections", 4, "--seconds", 11)
                       for language, pattern in (("cpp", "unary"), ("go", "bulk"))]
            moves = []
            for _ in range(3):
                with Admin(bed.socket) as admin:
                    driver = Driver(admin, 1.0, seed=1)
                    driver.run(2)
                    before = forwarded(admin.counters())
                    moves.append(len(admin.moves()))
                bed.kill_agent()
                time.sleep(0.3)  # the load meets a gateway without an agent; nothing to wait for
                restart_agent(bed)
                with Admin(bed.socket) as admin:
                    self.assertGreater(forwarded(admin.counters()), before)
                    self.assertTrue(bed.unpin("status")["adopted"])
            reports = [self.assert_unharmed(client) for client in clients]
        changes = sum(len(report["landings"]) - 4 for report in reports)
        print(f"three kills, moves between them {moves}, the clients changed servers {changes} times in "
              f"{sum(report['rpcs'] for report in reports)} RPCs")
        self.assertGreater(moves[0], 0)
        self.assertGreater(changes, 5)

    def test_killed_before_the_client_acknowledged(self):
        # The GOAWAY arrives, its acknowledgement does not.
        with served_bed("die", impair=("client", PERFECT), moves={"min_age": "100ms"}) as bed:
            client = open_h2(bed)
            server = echo(client, 0)
            with Admin(bed.socket) as admin:
                wait_spliceable(admin, client.local)
                bed.command_wires(signal.SIGUSR1, "acks blocked")
                admin.move(client.local)
                client.wait_for_goaway()
            bed.kill_agent()
            bed.command_wires(signal.SIGUSR2, "restored")
            restart_agent(bed)
            self.assert_finished(bed, client, server)

    def test_killed_before_the_goaway_arrived(self):
        # Committed, but neither the GOAWAY nor any of its repetitions has come through: the new agent must send it.
        with served_bed("die", impair=("client", PERFECT), moves={"min_age": "100ms"}) as bed:
            client = open_h2(bed)
            server = echo(client, 0)
            with Admin(bed.socket) as admin:
                wait_spliceable(admin, client.local)
                bed.command_wires(signal.SIGHUP, "replies cut")
                admin.move(client.local)
                wait_until(lambda: admin.moves()[0].goaways_sent > 0, "the GOAWAY has been sent")
            bed.kill_agent()
            bed.command_wires(signal.SIGUSR2, "restored")
            self.assertEqual(client.goaways, [])
            restart_agent(bed)
            client.wait_for_goaway()
            self.assert_finished(bed, client, server)

    def test_killed_under_load_before_the_goaways_arrived(self):
        with served_bed("die", impair=("client", PERFECT), moves={"min_age": "1s"}) as bed:
            client = start_client(bed, "cpp", "--pattern", "unary", "--connections", 6, "--seconds", 8)
            with Admin(bed.socket) as admin:
                old = wait_until(lambda: len(c := admin.connections(spliceable=True)) == 6 and c, "six can be moved")
                bed.command_wires(signal.SIGHUP, "replies cut")
                for connection in old:
                    admin.move(connection.client)
                wait_until(lambda: any(m.goaways_sent for m in admin.moves()), "a GOAWAY has been sent")
                committed = {m.client for m in admin.moves() if m.goaways_sent > 0}
            bed.kill_agent()
            bed.command_wires(signal.SIGUSR2, "restored")
            restart_agent(bed)
            with Admin(bed.socket) as admin:
                wait_until(lambda: committed.isdisjoint(c.client for c in admin.connections()),
                           "every connection that was told to go has gone")
                self.assertEqual(len(admin.connections()), 6)
            self.assert_unharmed(client)
        print(f"{len(committed)} of 6 moves were committed at the kill")

    def assert_finished(self, bed, client, server):
        """The connection goes on, byte for byte, and knows of one GOAWAY only."""
        for seed in range(1, 500):
            self.assertEqual(echo(client, seed, 1 + seed * 41), server)
        self.assertEqual([payload for _, payload in client.goaways], [GOAWAY_PAYLOAD])
        with Admin(bed.socket) as admin:
            with self.assertRaises(grpc.RpcError) as refused:
                admin.move(client.local)
            self.assertIn("already moved", refused.exception.details())


if __name__ == "__main__":
    unittest.main(verbosity=2)
