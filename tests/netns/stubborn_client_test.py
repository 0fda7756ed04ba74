#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that do not do what a GOAWAY asks: one never closes the old connection, one goes on using it."""

import unittest

import grpc

# First: it says where the others are.
from scene import GOAWAY_PAYLOAD, Admin, echo, find, open_h2, served_bed, wait_spliceable, wait_until
from admin import Move

QUICK = {"min_age": "100ms", "reconnect_timeout": "1s"}


def begin_move(admin, client):
    """Moves it, and returns the id of the move once the client has the GOAWAY."""
    wait_spliceable(admin, client.local)
    move = admin.move(client.local)
    client.wait_for_goaway()
    return move.id


def find_move(admin, number):
    return next(move for move in admin.moves() if move.id == number)


class StubbornClientTest(unittest.TestCase):
    def test_one_that_ignores_the_goaway_is_served_on(self):
        with served_bed("stb", moves=QUICK) as bed, Admin(bed.socket) as admin:
            client = open_h2(bed)
            server = echo(client, 0)
            number = begin_move(admin, client)
            for seed in range(1, 2000):
                self.assertEqual(echo(client, seed, 1 + seed * 17), server)
            self.assertEqual([payload for _, payload in client.goaways], [GOAWAY_PAYLOAD])
            ended = wait_until(lambda: (m := find_move(admin, number)).state == Move.EXPIRED and m,
                               "the move has expired without a reconnect")
            self.assertTrue(ended.HasField("acknowledged"))
            self.assertNotEqual(ended.detail, "")
            # Once is enough: a connection is never told twice.
            with self.assertRaises(grpc.RpcError) as refused:
                admin.move(client.local)
            self.assertEqual(refused.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertIn("already moved", refused.exception.details())
            echo(client, 5000)
            self.assertEqual(len(client.goaways), 1)

    def test_one_that_never_closes_is_forgotten_when_idle(self):
        with served_bed("stb", moves=QUICK, expiry={"established": "2s"}) as bed, Admin(bed.socket) as admin:
            old = open_h2(bed)
            before = echo(old, 0)
            number = begin_move(admin, old)
            new = open_h2(bed)
            wait_until(lambda: find_move(admin, number).state == Move.RECONNECTED, "the new connection is matched")
            self.assertNotEqual(echo(new, 1), before)
            self.assertIsNotNone(find(admin, old.local))

            def forgotten():
                echo(new, 2)
                return find(admin, old.local) is None
            wait_until(forgotten, "the idle old connection has expired", timeout=20)
            self.assertIsNotNone(find(admin, new.local))
            # Its next packet is of no known connection: by default a RST, so that the client learns of it at once.
            with self.assertRaises((ConnectionError, EOFError)):
                echo(old, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
