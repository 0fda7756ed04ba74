#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The interop programs without Unpin, through kernel routing: that they pass when all is well, and that what they are to
find is found. A client that cannot see a failure or an altered byte would prove nothing."""

import json
import os
import sys
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "testkit"), str(HERE.parent / "interop")]

from languages import LANGUAGES, PORT, client_argv, missing, server_argv  # noqa: E402
from testbed import Testbed  # noqa: E402
from topology import backend_address  # noqa: E402

PREFIX = f"{os.environ.get('UNPIN_TEST_PREFIX', 'tb')}dir"

# Relays to the address in argv and alters one byte of the replies in every 300000.
ALTER = """
import asyncio, sys
async def copy(reader, writer, alter):
    count = 0
    while data := await reader.read(65536):
        data = bytearray(data)
        if alter and (count + len(data)) // 300000 > count // 300000: data[len(data) // 2] ^= 0x40
        count += len(data)
        writer.write(data); await writer.drain()
    writer.close()
async def accept(reader, writer):
    up, down = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))
    await asyncio.gather(copy(reader, down, False), copy(up, writer, True), return_exceptions=True)
async def main():
    server = await asyncio.start_server(accept, "10.0.0.1", int(sys.argv[2]))
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def available():
    return [language for language in LANGUAGES if not missing(language)]


def run_client(bed, language, target, pattern, seconds=2):
    client = bed.start("client", client_argv(language, f"{target}:{PORT}", "--pattern", pattern,
                                             "--connections", 4, "--seconds", seconds))
    client.wait(60)
    return json.loads(client.stdout)


def start_server(bed, role, language, *options):
    server = bed.start(role, server_argv(language, role, *options))
    server.wait_for_line("^listening")
    return server


class InteropDirectTest(unittest.TestCase):
    def setUp(self):
        for language in ("cpp", "python", "go"):
            self.assertEqual(missing(language), [])

    def test_every_client_with_every_server(self):
        languages = available()
        with Testbed(PREFIX, backends=len(languages)) as bed:
            for i, language in enumerate(languages, 1):
                start_server(bed, f"b{i}", language)
            for client in languages:
                for i, server in enumerate(languages, 1):
                    for pattern in ("unary", "bulk"):
                        report = run_client(bed, client, backend_address(i), pattern, seconds=0.3)
                        with self.subTest(client=client, server=server, pattern=pattern):
                            self.assertEqual((report["failed"], report["corrupt"]), (0, 0), report["failures"])
                            self.assertGreater(report["rpcs"], 4)
                            self.assertEqual({(landing["connection"], landing["server"])
                                              for landing in report["landings"]},
                                             {(c, f"b{i}") for c in range(4)})

    def test_goaways_of_the_servers_are_survived(self):
        for language in available():
            with self.subTest(language), Testbed(PREFIX, backends=1) as bed:
                start_server(bed, "b1", language, "--max-age-ms", 700)
                report = run_client(bed, language, backend_address(1), "unary", seconds=3)
                print(f"{language}, GOAWAY each 0.7 s: {report['rpcs']} RPCs, {report['failed']} failed "
                      f"{report['failures'][:2]}")
                self.assertEqual(report["corrupt"], 0)
                self.assertEqual(report["failed"], 0, report["failures"])

    def test_a_killed_server_is_seen_as_failures(self):
        for language in available():
            with self.subTest(language), Testbed(PREFIX, backends=1) as bed:
                server = start_server(bed, "b1", "go")
                killer = threading.Timer(1.0, server.kill)
                killer.start()
                report = run_client(bed, language, backend_address(1), "unary")
                killer.join()
                self.assertGreater(report["rpcs"] - report["failed"], 50)
                self.assertGreater(report["failed"], 0)
                self.assertRegex(report["failures"][0]["code"].upper(), "UNAVAILABLE|^14$")

    def test_an_altered_byte_is_seen(self):
        for language in available():
            with self.subTest(language), Testbed(PREFIX, backends=1) as bed:
                start_server(bed, "b1", "go")
                relay = bed.start("gw", [sys.executable, "-c", ALTER, backend_address(1), str(PORT)])
                relay.wait_for_line("listening")
                report = run_client(bed, language, "10.0.0.1", "bulk")
                self.assertGreater(report["corrupt"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
