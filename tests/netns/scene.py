# SPDX-License-Identifier: Apache-2.0
"""What the tests with a running unpind share: paths, a bed with servers, waiting for a condition."""

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("testkit", "interop", "interop/python")]

# What tests import from here:
from admin import Admin  # noqa: E402,F401
from h2client import GOAWAY_PAYLOAD, H2Client, connect  # noqa: E402,F401
from languages import PORT, client_argv, server_argv  # noqa: E402
from testbed import VIP, Testbed, UnpinRefused  # noqa: E402,F401

import echo_pb2  # noqa: E402
from payload import payload  # noqa: E402

PAYLOAD_DIR = HERE.parent / "interop/python"
ECHO = "/unpin.interop.Interop/Echo"
STREAM = "/unpin.interop.Interop/Stream"


def prefix(name):
    return os.environ.get("UNPIN_TEST_PREFIX", "tb") + name


def wait_until(condition, what, timeout=10.0):
    """The first true value of the condition; AssertionError if none comes."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(0.005)


@contextmanager
def served_bed(name, backends=2, impair=None, server="cpp", **settings):
    """A bed with a server on every backend, and unpind serving the service "interop" on VIP:PORT."""
    with Testbed(prefix(name), backends, impair) as bed:
        start_servers(bed, server)
        bed.settings = settings
        bed.start_agent(bed.config({"interop": {"port": PORT}}, **settings))
        yield bed


def start_servers(bed, language, *options):
    for i in range(1, bed.topology.backends + 1):
        bed.start(f"b{i}", server_argv(language, f"b{i}", *options)).wait_for_line("^listening")


def restart_agent(bed):
    return bed.start_agent(bed.config({"interop": {"port": PORT}}, **bed.settings))


def start_client(bed, language, *options):
    return bed.start("client", client_argv(language, f"{VIP}:{PORT}", *options))


def open_h2(bed):
    return H2Client(connect(bed.netns("client"), VIP, PORT))


def echo(client, seed, size=1000):
    """One call with a payload that both ends check; returns the name of the server."""
    sent = payload(seed, size)
    reply = echo_pb2.EchoReply.FromString(
        client.call(ECHO, echo_pb2.EchoRequest(seed=seed, payload=sent).SerializeToString()))
    if reply.payload != sent:
        raise AssertionError(f"echo {seed}: the payload came back altered")
    return reply.server


def find(admin, client):
    """The connection of that client address:port, or None."""
    return next((c for c in admin.connections(client=client)), None)


def wait_spliceable(admin, client):
    return wait_until(lambda: (c := find(admin, client)) and c.spliceable and c,
                      f"{client} can be moved; it is {find(admin, client)}")
