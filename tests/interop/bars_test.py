#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The bars of the interop matrix: each one, missed by a made-up row, makes run exit with 1 and say which."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUN = Path(__file__).resolve().parent / "run"

CLEAR = {"client": "cpp", "server": "go", "pattern": "bulk", "impair": "backend", "rpcs": 5000, "failures": 0,
         "corrupt": 0, "moves": 100, "acknowledged": 100, "reconnected": 100, "reconnected_alone": 80,
         "reconnect_p50_ms": 1.5, "flows": 100, "flows_spliceable": 100, "split_streams": 0, "failure_details": [],
         "changes_of_server": 80, "seconds": 20, "ticks": 105, "refused": {}, "unexpected_refusals": {},
         "unfinished": []}


def show(*rows):
    """(exit status, output) of run for these rows."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "rows.json")
        file.write_text(json.dumps({"rows": rows}), encoding="utf-8")
        done = subprocess.run([sys.executable, RUN, "--show", file], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class BarsTest(unittest.TestCase):
    def assert_missed(self, expected, **changed):
        # A row that clears all follows: one that misses is not outweighed.
        status, output = show({**CLEAR, **changed}, CLEAR)
        self.assertEqual(status, 1, output)
        self.assertRegex(output, f"missed: .*{expected}")
        self.assertEqual(output.count("missed:"), 1, output)

    def test_a_row_that_clears_all(self):
        status, output = show(CLEAR, {**CLEAR, "flows_spliceable": 99, "reconnect_p50_ms": None})
        self.assertEqual(status, 0, output)
        self.assertNotIn("missed", output)

    def test_one_failed_rpc(self):
        self.assert_missed("1 RPCs failed.*GOAWAY received", failures=1, failure_details=[{"detail": "GOAWAY received"}])

    def test_one_altered_payload(self):
        self.assert_missed("1 payloads", corrupt=1)

    def test_a_stream_that_changed_its_server(self):
        self.assert_missed("1 streams changed", split_streams=1)

    def test_a_move_not_acknowledged(self):
        self.assert_missed("1 moves not acknowledged", acknowledged=99, unfinished=["10.0.0.2:4000: SENT"])

    def test_more_than_one_flow_in_a_hundred_lost(self):
        self.assert_missed("98 of 100 flows", flows_spliceable=98)

    def test_no_flow_left_to_measure(self):
        self.assert_missed("0 of 0 flows", flows=0, flows_spliceable=0)

    def test_a_client_that_hung(self):
        self.assert_missed("only 59 RPCs", rpcs=59)
        self.assert_missed("only 199 RPCs", rpcs=199, pattern="unary")

    def test_too_few_moves(self):
        self.assert_missed("only 52 moves", moves=52, acknowledged=52)

    def test_a_refusal_without_need(self):
        self.assert_missed("refused: .*tls", unexpected_refusals={"FAILED_PRECONDITION: tls": 1})

    def test_moves_the_client_did_not_see(self):
        self.assert_missed("changed servers 71 times", changes_of_server=71)

    def test_a_row_that_could_not_be_measured(self):
        status, output = show({"client": "js", "server": "go", "pattern": "long", "impair": "none",
                               "error": "unpind-7 ended (1)"}, CLEAR)
        self.assertEqual(status, 1, output)
        self.assertIn("missed: unpind-7 ended (1)", output)

    def test_no_rows_at_all(self):
        self.assertEqual(show()[0], 1)


if __name__ == "__main__":
    unittest.main()
