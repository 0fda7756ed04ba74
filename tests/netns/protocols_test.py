#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is not cleartext HTTP/2 passes untouched, is shown by its name, and a move is refused with that reason."""

import http.client
import json
import socket
import sys
import unittest
from contextlib import contextmanager

from scene import (PAYLOAD_DIR, PORT, VIP, Admin, Testbed, UnpinRefused, connect, find, payload, prefix, start_client,
                   start_servers, wait_until)
from h2client import in_namespace
from process import run

# Answers each GET of /SEED/SIZE with that payload; HTTP/1.1, keep-alive.
HTTP_SERVER = """
import http.server, sys
from payload import payload
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        seed, size = map(int, self.path.strip("/").split("/"))
        self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
        self.wfile.write(payload(seed, size))
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler)
print("listening", flush=True)
server.serve_forever()
"""
# Sends back what it gets; speaks first if told so.
TCP_SERVER = """
import socketserver, sys
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(sys.argv[2].encode())
        while data := self.request.recv(65536): self.request.sendall(data)
server = socketserver.ThreadingTCPServer(("0.0.0.0", int(sys.argv[1])), Handler)
print("listening", flush=True)
server.serve_forever()
"""


@contextmanager
def bed_with(script, *words):
    with Testbed(prefix("pro"), backends=2) as bed:
        for role in ("b1", "b2"):
            server = bed.start(role, ["env", f"PYTHONPATH={PAYLOAD_DIR}", sys.executable, "-c", script, PORT, *words])
            server.wait_for_line("listening")
        bed.start_agent(bed.config({"interop": {"port": PORT}}, moves={"min_age": "1ms"}))
        yield bed


def receive(connected, size):
    data = b""
    while len(data) < size:
        data += connected.recv(65536) or b"the connection has ended early"
    return data


class ProtocolsTest(unittest.TestCase):
    def assert_shown_and_refused(self, bed, client, protocol):
        with Admin(bed.socket) as admin:
            shown = wait_until(lambda: (c := find(admin, client)) and c.protocol != "unknown" and c,
                               f"{client} is recognised")
        self.assertEqual((shown.protocol, shown.spliceable, shown.not_spliceable), (protocol, False, protocol))
        with self.assertRaisesRegex(UnpinRefused, rf"exit 1: unpin: .*\b{protocol}\b"):
            bed.unpin("move", client)

    def test_grpc_over_tls(self):
        with Testbed(prefix("pro"), backends=2) as bed:
            run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-keyout", str(bed.directory / "key.pem"), "-out", str(bed.directory / "cert.pem"), "-days", "2",
                 "-subj", "/CN=interop", "-addext", "subjectAltName=DNS:interop"])
            start_servers(bed, "python", "--tls", bed.directory)
            bed.start_agent(bed.config({"interop": {"port": PORT}}))
            client = start_client(bed, "python", "--tls", bed.directory, "--connections", 4, "--seconds", 4)
            with Admin(bed.socket) as admin:
                connections = wait_until(lambda: len(c := admin.connections(protocol="tls")) == 4 and c,
                                         "four connections are shown as tls")
                wait_until(lambda: all(c.age.seconds >= 1 for c in admin.connections()), "all are old enough")
            for connection in connections:
                self.assert_shown_and_refused(bed, connection.client, "tls")
            client.wait(30)
            report = json.loads(client.stdout)
            self.assertEqual((report["failed"], report["corrupt"]), (0, 0), report["failures"])
            self.assertGreater(report["rpcs"], 100)

    def test_http1(self):
        with bed_with(HTTP_SERVER) as bed:
            with in_namespace(bed.netns("client")):
                client = http.client.HTTPConnection(VIP, PORT, timeout=10)
                client.connect()
            local = "%s:%d" % client.sock.getsockname()
            for seed in range(100):
                size = 1 + seed * 1009
                client.request("GET", f"/{seed}/{size}")
                self.assertEqual(client.getresponse().read(), payload(seed, size))
                if seed == 50:
                    self.assert_shown_and_refused(bed, local, "http1")
            client.close()

    def test_raw_tcp(self):
        for greeting in ("", "220 the server speaks first\r\n"):
            with self.subTest(greeting), bed_with(TCP_SERVER, greeting) as bed:
                client = connect(bed.netns("client"), VIP, PORT)
                local = "%s:%d" % client.getsockname()
                self.assertEqual(receive(client, len(greeting)), greeting.encode())
                for seed in range(100):
                    sent = payload(seed, 1 + seed * 331)
                    client.sendall(sent)
                    self.assertEqual(receive(client, len(sent)), sent)
                    if seed == 50:
                        self.assert_shown_and_refused(bed, local, "opaque")
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(1), b"")
                client.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
