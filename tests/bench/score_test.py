#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios' scores, on reports small enough to judge by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/scenario"))
from score import (best_assignment, counts_between, last_reply, max_over_mean, missed_bars, recovery,  # noqa: E402
                   seconds_to_balance)
from table import page  # noqa: E402


def report(*counts, width=1.0, **more):
    """One bucket for each mapping of backend to replies."""
    return {"bucket_s": width, "series": [{"begin_s": i * width, "backends": c} for i, c in enumerate(counts)], **more}


def row(scenario, **columns):
    return {"scenario": scenario, "seed": 1, "peer": "unpin", "max_over_mean": None, "best_possible": None,
            "seconds_to_balance": None, "moves": 0, "failures": 0, "recovery_s": None, "mean_ms": 1, "worst_ms": 1, "noise": 0,
            **columns}


class Scores(unittest.TestCase):
    def test_max_over_mean(self):
        self.assertEqual(max_over_mean([3, 3, 3]), 1)
        self.assertEqual(max_over_mean([9, 0, 0]), 3)
        self.assertIsNone(max_over_mean([0, 0]))

    def test_best_assignment_of_whole_connections(self):
        self.assertAlmostEqual(best_assignment([1, 1, 1, 1], 2), 1)
        self.assertAlmostEqual(best_assignment([3, 1, 1, 1], 2), 1)
        self.assertAlmostEqual(best_assignment([5, 1, 1, 1], 2), 5 / 4)
        self.assertAlmostEqual(best_assignment([800 / i for i in range(1, 9)], 3), 1.1038, places=3)  # S1

    def test_only_whole_buckets_count(self):
        seen = report({"b1": 1}, {"b1": 10, "b2": 5}, {"b1": 100})
        self.assertEqual(counts_between(seen, 1, 2.5, ["b1", "b2"]), [10, 5])

    def test_balanced_is_so_many_windows_on_end(self):
        even, uneven = {"b1": 5, "b2": 5}, {"b1": 9, "b2": 1}
        seen = report(uneven, even, uneven, even, even, even)
        self.assertEqual(seconds_to_balance(seen, ["b1", "b2"], 0.0, 1.2, 1.0, 3, 6), 3)
        self.assertEqual(seconds_to_balance(seen, ["b1", "b2"], 1.0, 1.2, 1.0, 3, 6), 2)
        self.assertIsNone(seconds_to_balance(seen, ["b1", "b2"], 0.0, 1.2, 1.0, 3, 5))

    def test_the_last_reply_of_a_drained_backend(self):
        self.assertEqual(last_reply(report({"b1": 1}, {"b1": 1}, {"b2": 1}), "b1", 1.0), 1)
        self.assertEqual(last_reply(report({"b1": 1}, {"b2": 1}), "b1", 3.0), 0)

    def test_recovery_is_when_the_last_failure_was_scheduled(self):
        self.assertEqual(recovery({"totals": {"failed": 2}, "failures": {"last_scheduled_s": 4.5}}, 3.0), 1.5)
        self.assertEqual(recovery({"totals": {"failed": 0}}, 3.0), 0)


class Bars(unittest.TestCase):
    GOOD = (row("S1", max_over_mean=1.15, best_possible=1.104, seconds_to_balance=1.9), row("S2", seconds_to_balance=1.0, moves=8),
            row("S3-early", mean_ms=150, worst_ms=2500), row("S4-term", recovery_s=2.0), row("S5", failures=6, recovery_s=0.1),
            row("S5b", failures=300, recovery_s=1.5))
    BAD = (row("S1", max_over_mean=1.16, best_possible=1.104, seconds_to_balance=1.9), row("S2", seconds_to_balance=1.1, moves=8),
           row("S1", max_over_mean=1.1, best_possible=1.104, seconds_to_balance=None), row("S2", seconds_to_balance=1, moves=9),
           row("S2", seconds_to_balance=1, moves=7), row("S3-early", mean_ms=151, worst_ms=2500), row("S4-kill", recovery_s=2.1),
           row("S4-term-retry", recovery_s=1, failures=1), row("S5-retry", failures=7, recovery_s=0.1),
           row("S5b", failures=301, recovery_s=1.5), row("S5b", failures=300, recovery_s=1.6))

    def test_what_is_good_enough_passes(self):
        for good in self.GOOD:
            self.assertEqual(list(missed_bars(good)), [])

    def test_every_bar_can_be_missed(self):
        for bad in self.BAD:
            with self.subTest(**bad):
                self.assertEqual(len(list(missed_bars(bad))), 1)


class Pages(unittest.TestCase):
    def test_a_page_names_what_was_missed_and_every_row(self):
        columns = {"rpcs": 10, "p50_ms": 1.25, "p99_ms": 2}
        rows = [row("S5", failures=7, recovery_s=0.1, **columns), row("S5", failures=97, **columns) | {"peer": "nft"}]
        written = page(rows, "how", "pictures")
        self.assertIn("- S5 seed 1: failures is 7, must be at most 6.000", written)
        self.assertNotIn("97, must", written)  # only Unpin is held to bars
        self.assertIn("| nft | 1 | - | - | - | 0 | 10 | 97 | 1 | 1.25 | 2 | 1 | - |", written)
        self.assertIn("(pictures/S5-shares.png)", written)


if __name__ == "__main__":
    unittest.main()
