# SPDX-License-Identifier: Apache-2.0
"""What stands between client and backends: Unpin, or what a user would choose instead. Each is set up on the gateway of a
testbed, as its documentation would have it, and told of the same changes."""

import socket
import time

from testbed import VIP
from topology import backend_address

PORT = 50051


def endpoint(i):
    return f"{backend_address(i)}:{PORT}"


class Peer:
    serve_options = ()   # of unpin-gen serve
    load_options = ()    # of unpin-gen grpc
    one_to_one = True    # a client's connection is one to a backend; else new ones at the backends are no moves

    def __init__(self, bed, scenario):
        self.bed, self.scenario = bed, scenario
        self.known = scenario.at_first()

    def target(self):
        return f"{VIP}:{PORT}"

    def start(self):
        pass

    def add(self, backends):
        self.known += backends

    def drain(self, i):
        self.known = [j for j in self.known if j != i]

    def moves(self):
        return None


class Unpin(Peer):
    def start(self):
        policy = {"rebalance": {"enabled": True}, **self.scenario.policy}
        self.bed.start_agent(self.bed.config({"bench": {"port": PORT, "backends": self.known, "policy": policy}}))

    def add(self, backends):
        for i in backends:
            self.bed.unpin("add", "backend", "bench", endpoint(i))

    def drain(self, i):
        self.bed.unpin("drain", "bench", endpoint(i))

    def moves(self):
        return len(self.bed.unpin("moves", "--limit", 100000).get("moves", []))


class HaproxyTcp(Peer):
    mode = ("mode tcp",)
    bind = server = ""

    def start(self):
        self.bed.run("gw", ["ip", "address", "add", f"{VIP}/32", "dev", "lo"])
        self.control = self.bed.directory / "haproxy.sock"
        every = range(1, len(self.scenario.backends) + 1)
        servers = [f"  server b{i} {endpoint(i)} {self.server} check {'' if i in self.known else 'disabled'}" for i in every]
        text = "\n".join([
            "global", f"  stats socket {self.control} mode 600 level admin", "defaults", *("  " + m for m in self.mode),
            "  timeout connect 1s", "  timeout client 1h", "  timeout server 1h", "  retries 3", "  option redispatch 1",
            "frontend f", f"  bind {VIP}:{PORT} {self.bind}", "  default_backend b", "backend b", "  balance roundrobin",
            *servers, ""])
        file = self.bed.directory / "haproxy.cfg"
        file.write_text(text)
        self.bed.start("gw", ["haproxy", "-db", "-f", file], name="haproxy")
        wait_for_listener(self.bed)

    def tell(self, command):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.control))
            control.sendall(command.encode() + b"\n")
            answer = control.recv(4096).decode().strip()
        if answer:
            raise RuntimeError(f"haproxy: {command}: {answer}")

    def add(self, backends):
        for i in backends:
            self.tell(f"set server b/b{i} state ready")

    def drain(self, i):
        self.tell(f"set server b/b{i} state drain")


class HaproxyTcpMaxAge(HaproxyTcp):
    serve_options = ("--max-connection-age", "5s")


class HaproxyHttp(HaproxyTcp):
    one_to_one = False
    mode = ("mode http", "option http-keep-alive")
    bind = server = "proto h2"


class Nginx(Peer):
    one_to_one = False

    def write(self):
        servers = "\n".join(f"    server {endpoint(i)};" for i in self.known)
        self.file.write_text(f"""
worker_processes 1; daemon off; pid {self.bed.directory}/nginx.pid; error_log {self.bed.directory}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 1h;
  client_body_temp_path {self.bed.directory}/body; proxy_temp_path {self.bed.directory}/proxy;
  fastcgi_temp_path {self.bed.directory}/fcgi; uwsgi_temp_path {self.bed.directory}/uwsgi; scgi_temp_path {self.bed.directory}/scgi;
  upstream b {{
{servers}
    keepalive 64; keepalive_requests 100000000;
  }}
  server {{ listen {VIP}:{PORT} http2; location / {{ grpc_pass grpc://b; grpc_connect_timeout 1s; grpc_read_timeout 1h; }} }}
}}
""")

    def start(self):
        self.bed.run("gw", ["ip", "address", "add", f"{VIP}/32", "dev", "lo"])
        self.file = self.bed.directory / "nginx.conf"
        self.write()
        self.process = self.bed.start("gw", ["nginx", "-e", self.bed.directory / "nginx.log", "-c", self.file], name="nginx")
        wait_for_listener(self.bed)

    def reload(self):
        self.write()
        self.bed.run("gw", ["nginx", "-e", str(self.bed.directory / "nginx.log"), "-c", str(self.file), "-s", "reload"])

    def add(self, backends):
        super().add(backends)
        self.reload()

    def drain(self, i):
        super().drain(i)
        self.reload()


class NftDnat(Peer):
    def rules(self):
        targets = ", ".join(f"{n} : {backend_address(i)}" for n, i in enumerate(self.known))
        return (f"table ip bench {{ chain pre {{ type nat hook prerouting priority -100; "
                f"ip daddr {VIP} tcp dport {PORT} dnat to numgen inc mod {len(self.known)} map {{ {targets} }}; }} }}")

    def start(self):
        self.bed.run("gw", ["nft", self.rules()])

    def add(self, backends):
        super().add(backends)
        self.bed.run("gw", ["nft", "flush table ip bench; " + self.rules()])

    def drain(self, i):
        super().drain(i)
        self.bed.run("gw", ["nft", "flush table ip bench; " + self.rules()])


class RoundRobin(Peer):
    """The client's own balancing over the addresses it was given when it started."""
    one_to_one = False
    load_options = ("--round-robin",)

    def target(self):
        return ",".join(endpoint(i) for i in self.known)


def wait_for_listener(bed, seconds=10):
    end = time.monotonic() + seconds
    while f":{PORT} " not in bed.run("gw", ["ss", "-Htln"]):
        if time.monotonic() > end:
            raise RuntimeError("the balancer does not listen")
        time.sleep(0.05)


PEERS = {"unpin": Unpin, "haproxy-tcp": HaproxyTcp, "haproxy-tcp-maxage": HaproxyTcpMaxAge, "haproxy-http": HaproxyHttp,
         "nginx": Nginx, "nft": NftDnat, "round-robin": RoundRobin}
