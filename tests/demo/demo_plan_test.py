#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the demo counts, on numbers small enough to do by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from demo import Phase, counted, evenness

class Counted(unittest.TestCase):
    def test_only_whole_buckets_within_the_phase_count(self):
        phase = Phase("any", [1, 2])
        phase.begin, phase.end = 1001.5, 1004.0
        series = [{"begin_s": i, "backends": {"b1": 10 ** i, "b2": 1}} for i in range(6)]
        counts = counted({"began_unix_s": 1000.0, "bucket_s": 1, "series": series}, phase)
        self.assertEqual(counts, {1: 1100, 2: 2, 3: 0, 4: 0, 5: 0})


class Evenness(unittest.TestCase):
    def test_even_is_one_and_all_on_one_of_three_is_three(self):
        self.assertEqual(evenness([7, 7, 7]), 1)
        self.assertEqual(evenness([21, 0, 0]), 3)


if __name__ == "__main__":
    unittest.main()
