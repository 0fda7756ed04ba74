#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the demo decides, on loads small enough to solve by hand."""
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from demo import evenness, plan

BACKENDS = ["b1", "b2", "b3"]


def loads(connections, moves=()):
    at = {client: backend for client, (backend, _) in connections.items()}
    at.update({client: target for client, _, target in moves})
    return {b: sum(rate for client, (_, rate) in connections.items() if at[client] == b) for b in BACKENDS}


class Plan(unittest.TestCase):
    def test_even_connections_stay(self):
        self.assertEqual(plan({"c1": ("b1", 5), "c2": ("b2", 5), "c3": ("b3", 5)}, BACKENDS), [])

    def test_one_move_where_one_move_is_enough(self):
        connections = {"c1": ("b1", 10), "c2": ("b1", 10), "c3": ("b2", 10)}
        self.assertIn(plan(connections, BACKENDS), ([("c1", "b1", "b3")], [("c2", "b1", "b3")]))

    def test_an_elephant_is_left_alone(self):
        self.assertEqual(plan({"elephant": ("b1", 90), "c1": ("b2", 5), "c2": ("b3", 5)}, BACKENDS), [])

    def test_a_backend_without_connections_is_the_emptiest(self):
        self.assertEqual({target for _, _, target in plan({f"c{i}": ("b1", 1) for i in range(9)}, BACKENDS)}, {"b2", "b3"})

    def test_no_plan_raises_the_highest_load_or_moves_a_connection_twice(self):
        seed = random.randrange(2**32)
        chance = random.Random(seed)
        for case in range(300):
            connections = {f"c{i}": (chance.choice(BACKENDS), chance.expovariate(0.02)) for i in range(8)}
            moves = plan(connections, BACKENDS)
            with self.subTest(seed=seed, case=case):
                self.assertEqual(len({client for client, _, _ in moves}), len(moves))
                before, after = loads(connections), loads(connections, moves)
                self.assertLessEqual(max(after.values()), max(before.values()) * (1 + 1e-9))


class Evenness(unittest.TestCase):
    def test_even_is_one_and_all_on_one_of_three_is_three(self):
        self.assertEqual(evenness([7, 7, 7]), 1)
        self.assertEqual(evenness([21, 0, 0]), 3)


if __name__ == "__main__":
    unittest.main()
