#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The testbed itself: what is promised about wires, waiting and cleaning up, without unpind."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

from process import Process, ProcessFailed  # noqa: E402
from testbed import Testbed  # noqa: E402
from topology import backend_address  # noqa: E402

PREFIX = f"{os.environ.get('UNPIN_TEST_PREFIX', 'tb')}self"
SERVE_ONE_LINE = ("import socket; s = socket.create_server(('0.0.0.0', 7000)); print('listening', flush=True); "
                  "c, a = s.accept(); c.sendall(a[0].encode()); c.close()")
READ_ALL = ("import socket, sys; s = socket.create_connection((sys.argv[1], 7000), 5); "
            "print(s.makefile().read())")


def left_behind():
    """What of the testbed still exists: namespaces, mounts, directory."""
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    found = [line for line in namespaces.splitlines() if line.startswith(PREFIX)]
    found += [line for line in mounts.splitlines() if f"/run/unpin-testbed-{PREFIX}/" in line]
    found += [str(path) for path in [Path(f"/run/unpin-testbed-{PREFIX}")] if path.exists()]
    return found


class TestbedTest(unittest.TestCase):
    def test_kernel_forwards_between_client_and_backends(self):
        with Testbed(PREFIX, backends=2) as bed:
            for i in (1, 2):
                server = bed.start(f"b{i}", [sys.executable, "-c", SERVE_ONE_LINE])
                server.wait_for_line("listening")
                self.assertEqual(
                    bed.run("client", [sys.executable, "-c", READ_ALL, backend_address(i)]).strip(), "10.0.0.2")
        self.assertEqual(left_behind(), [])

    def test_removes_all_after_an_exception(self):
        with self.assertRaisesRegex(ValueError, "from inside"):
            with Testbed(PREFIX, backends=1) as bed:
                bed.start("b1", ["sleep", "1000"])
                raise ValueError("from inside")
        self.assertEqual(left_behind(), [])

    def test_removes_all_after_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start_held_testbed()
            child.signal(number)
            self.assertNotEqual(child.wait(20), 0)
            self.assertEqual(left_behind(), [], f"after signal {number}")

    def test_removes_what_a_killed_run_left(self):
        child = self.start_held_testbed()
        child.kill()
        self.assertNotEqual(left_behind(), [])
        with Testbed(PREFIX, backends=1):
            pass
        self.assertEqual(left_behind(), [])

    def test_refuses_a_prefix_in_use(self):
        with Testbed(PREFIX, backends=1):
            with self.assertRaisesRegex(RuntimeError, "in use"):
                with Testbed(PREFIX, backends=1):
                    pass

    def test_a_process_that_ends_early_is_reported_at_once(self):
        start = time.monotonic()
        process = Process(["sh", "-c", "echo no such thing >&2; exit 3"])
        with self.assertRaisesRegex(ProcessFailed, r"(?s)ended \(3\).*no such thing"):
            process.wait_for_line("listening", timeout=30)
        self.assertLess(time.monotonic() - start, 10)

    @staticmethod
    def start_held_testbed():
        child = Process([sys.executable, __file__, "hold"], name="hold")
        child.wait_for_line("built")
        return child


def hold():
    with Testbed(PREFIX, backends=1) as bed:
        bed.start("b1", ["sleep", "1000"])
        print("built", flush=True)
        signal.pause()


if __name__ == "__main__":
    if sys.argv[1:] == ["hold"]:
        hold()
    else:
        unittest.main(verbosity=2)
