#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The bad wire is as bad as it says: loss and lateness, as a receiver sees them and as the wire counts them."""

import json
import os
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

from testbed import Testbed  # noqa: E402

PREFIX = f"{os.environ.get('UNPIN_TEST_PREFIX', 'tb')}bad"
PROBES = 6000

# Sends numbered TCP segments to a closed port (the seq field is the number), 8000 a second.
SEND = f"""
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
s.connect(("10.1.1.2", 0))
start = time.monotonic()
for number in range({PROBES}):
    while time.monotonic() < start + number / 8000: pass
    s.send(struct.pack("!HHIIBBHHH", 40000, 9, number, 0, 0x50, 0x10, 1024, 0, 0))
s.send(struct.pack("!HHIIBBHHH", 40000, 9, 0xffffffff, 0, 0x50, 0x10, 1024, 0, 0))
"""
# Prints the numbers in the order of their arrival; ends when nothing came for a second.
RECEIVE = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
print("listening", flush=True)
s.settimeout(30)
numbers = []
while True:
    try: packet = s.recv(100)
    except socket.timeout: break
    s.settimeout(1)
    source, destination, number = struct.unpack_from("!HHI", packet, 20)
    if (source, destination) == (40000, 9) and number != 0xffffffff: numbers.append(number)
print(" ".join(map(str, numbers)))
"""
COPY = """
import socket, sys, hashlib
if sys.argv[1] == "receive":
    server = socket.create_server(("0.0.0.0", 7000)); print("listening", flush=True)
    c, _ = server.accept(); digest = hashlib.sha256()
    while data := c.recv(1 << 16): digest.update(data)
    print(digest.hexdigest())
else:
    data = bytes(range(251)) * 80000
    c = socket.create_connection(("10.1.1.2", 7000)); c.sendall(data); c.close()
    print(hashlib.sha256(data).hexdigest())
"""


def python(script, *words):
    return [sys.executable, "-c", script, *words]


def counts(wire):
    return json.loads(wire.wait_for_line(r'\{"directions".*').group())["directions"]


class ImpairTest(unittest.TestCase):
    def test_receiver_sees_the_stated_loss_and_lateness(self):
        for side in ("client", "backend"):
            with self.subTest(side), Testbed(PREFIX, backends=1, impair=(side, ["--seed", "7"])) as bed:
                receiver = bed.start("b1", python(RECEIVE))
                receiver.wait_for_line("listening")
                bed.run("client", python(SEND))
                receiver.wait(60)
                arrived = [int(word) for word in receiver.lines["stdout"][1].split()]
                bed.impairments[0].stop()
                counted = counts(bed.impairments[0])[0 if side == "client" else 1]
            lost = PROBES - len(arrived)
            overtaken = sum(1 for i, number in enumerate(arrived) if number < max(arrived[:i + 1]))
            print(f"{side}: lost {lost}, overtaken {overtaken} of {PROBES}; the wire counted {counted}")
            self.assertEqual(len(set(arrived)), len(arrived))
            # Five standard deviations of the binomial distribution about 1 % and 5 % of 6000.
            self.assertLess(abs(lost - 60), 39)
            self.assertLess(abs(overtaken - 300), 85)
            self.assertLessEqual(abs(counted["lost"] - lost), 1)  # the last, unnumbered one may be lost too
            self.assertEqual(counted["released"], counted["late"])

    def test_tcp_crosses_it_unaltered(self):
        with Testbed(PREFIX, backends=1, impair=("client", [])) as bed:
            receiver = bed.start("b1", python(COPY, "receive"))
            receiver.wait_for_line("listening")
            sent = bed.run("client", python(COPY, "send"), timeout=120).strip()
            receiver.wait(60)
            self.assertEqual(receiver.lines["stdout"][1], sent)
            bed.impairments[0].stop()
            forth, back = counts(bed.impairments[0])
            print(forth, back)
            self.assertGreater(forth["packets"], 20_080_000 / 1448)  # one frame a segment: nothing merged
            self.assertGreater(min(back["lost"], back["late"]), 0)

    def test_bare_acks_can_be_stopped(self):
        with Testbed(PREFIX, backends=1, impair=("client", ["--loss", "0", "--late", "0"])) as bed:
            wire = bed.impairments[0]
            receiver = bed.start("b1", python(RECEIVE))
            receiver.wait_for_line("listening")
            wire.signal(signal.SIGUSR1)
            wire.wait_for_line("acks blocked")
            bed.run("client", python(SEND))
            receiver.wait(60)
            self.assertEqual(receiver.lines["stdout"][1], "")
            wire.signal(signal.SIGUSR2)
            wire.wait_for_line("restored")
            wire.stop()
            self.assertEqual(counts(wire)[0]["blocked"], PROBES + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
