#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo itself; tools/demo builds what it runs. Three gRPC servers, one client program with eight connections of
very different rates, and a gateway between them, each in a network namespace. Exit status 0: every RPC succeeded and
the load ended more even than it began."""

import argparse
import json
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/testkit"))

from process import ProcessFailed  # noqa: E402
from testbed import Testbed, UnpinRefused, VIP  # noqa: E402

SERVICE, PORT, BACKENDS, CONNECTIONS, RPS = "greeter", 50051, 3, 8, 600
WATCH_S = 8          # how long each of the two states is shown
WORTHWHILE = 0.02    # a move must take this share off the fullest backend


# ---- deciding: as simple as it can be; a person could do it by hand ----

def plan(connections, backends):
    """Moves [(client, from, to)] of connections {client: (backend, rate)}: always one from the fullest backend to the
    emptiest, the one that leaves the fuller of the two least full, as long as that is worth it."""
    left = dict(connections)
    load = {backend: sum(rate for at, rate in connections.values() if at == backend) for backend in backends}
    moves = []
    while True:
        fullest, emptiest = max(load, key=load.get), min(load, key=load.get)
        after = {client: max(load[fullest] - rate, load[emptiest] + rate)
                 for client, (at, rate) in left.items() if at == fullest}
        best = min(after, key=after.get, default=None)
        if best is None or after[best] > load[fullest] * (1 - WORTHWHILE):
            return moves
        rate = left.pop(best)[1]  # at most one move each: its next connection has another port
        load[fullest] -= rate
        load[emptiest] += rate
        moves.append((best, fullest, emptiest))


def evenness(counts):
    """Highest over mean: 1.00 is even, 3.00 is everything on one of three."""
    return max(counts) * len(counts) / max(sum(counts), 1)


# ---- looking ----

class Sight:
    """What `unpin connections` says, as rates between two looks."""

    def __init__(self, bed):
        self.bed = bed
        self.streams, self.at = {}, 0.0

    def rates(self):
        """{client: (backend, requests per second since the last look)}"""
        connections = self.bed.unpin("connections").get("connections", [])
        now = time.monotonic()
        found = {c["client"]: (c["backend"], int(c["streams_begun"])) for c in connections}
        rates = {client: (backend, (streams - self.streams.get(client, streams)) / (now - self.at))
                 for client, (backend, streams) in found.items()}
        self.streams, self.at = {client: streams for client, (_, streams) in found.items()}, now
        return rates


class Table:
    """Each backend's share, drawn over itself on a terminal and now and then elsewhere."""

    def __init__(self, backends):
        self.backends = backends
        self.live = sys.stdout.isatty()
        self.drawn = 0

    def show(self, rates, last):
        if not self.live and not last:
            return
        lines = self._lines(rates)
        if self.live and self.drawn:
            print(f"\033[{self.drawn}A", end="")
        print("\n".join(line + ("\033[K" if self.live else "") for line in lines), flush=True)
        self.drawn = len(lines)

    def _lines(self, rates):
        total = sum(rate for _, rate in rates.values()) or 1
        lines = []
        for backend in self.backends:
            here = [rate for at, rate in rates.values() if at == backend]
            share = sum(here) / total
            lines.append(f"    {backend:<16} {'█' * round(share * 40):<40} {share:6.1%} {sum(here):5.0f} rpc/s  "
                         f"{len(here)} connections")
        per_backend = [sum(rate for at, rate in rates.values() if at == backend) for backend in self.backends]
        return lines + [f"    highest / mean: {evenness(per_backend):.2f}"]


def watch(bed, backends, seconds):
    """Shows the live table, and returns the rates over the whole time."""
    whole, second, table = Sight(bed), Sight(bed), Table(backends)
    whole.rates()
    second.rates()
    for tick in range(seconds):
        time.sleep(1)
        table.show(second.rates(), last=tick == seconds - 1)
    return whole.rates()


# ---- acting ----

def move_until_even(bed, rates, backends):
    moves = plan(rates, backends)
    if not moves:
        print("    they happen to be as even as whole connections can be: nothing to move")
    for client, source, target in moves:
        began = time.monotonic()
        answer = bed.unpin("move", client, "--service", SERVICE, "--to", target, "--wait", "5s")
        print(f"    $ unpin move {client} --to {target}    {rates[client][1]:3.0f} rpc/s leave {source}: "
              f"{answer['state'].lower()} in {(time.monotonic() - began) * 1000:.0f} ms", flush=True)
    return len(moves)


def start(bed):
    gen = bed.bin_dir / "unpin-gen"
    for i in range(1, BACKENDS + 1):
        bed.start(f"b{i}", [gen, "serve", "--listen", f"0.0.0.0:{PORT}", "--name", f"b{i}", "--workers", "16",
                            "--service-time", "5ms"]).wait_for_line("ready on")
    bed.start_agent(bed.config({SERVICE: {"port": PORT}}))
    load = bed.start("client", [gen, "grpc", "--target", f"{VIP}:{PORT}", "--connections", CONNECTIONS, "--rates",
                                "zipf:1", "--rps", RPS, "--duration", "24h", "--backends", BACKENDS,
                                "--json", bed.directory / "report.json"], name="load")
    deadline = time.monotonic() + 10
    while len(bed.unpin("connections").get("connections", [])) < CONNECTIONS:
        if not load.running() or time.monotonic() > deadline:
            raise ProcessFailed(f"the client has not opened its connections: {load.stderr}")
        time.sleep(0.1)
    return load


# ---- the proof: what the client itself counted ----

def counted(report, begin, end):
    """Replies of each backend in the whole seconds of the load between two times of day."""
    began = report["began_unix_s"]
    names = [f"b{i}" for i in range(1, BACKENDS + 1)]
    buckets = [b for b in report["series"] if began + b["begin_s"] >= begin and
               began + b["begin_s"] + report["bucket_s"] <= end]
    return [sum(b["backends"].get(name, 0) for b in buckets) for name in names]


def shares(counts):
    return "  ".join(f"b{i} {count / max(sum(counts), 1):6.1%}" for i, count in enumerate(counts, 1))


def conclude(report, before, after, moves):
    totals = report["totals"]
    was, now = counted(report, *before), counted(report, *after)
    print("\n  What the client counted")
    print(f"    before   {shares(was)}   highest / mean {evenness(was):.2f}")
    print(f"    after    {shares(now)}   highest / mean {evenness(now):.2f}   with {moves} moves")
    print(f"    RPCs     {totals['sent']} sent, {totals['failed']} failed")
    return totals["failed"] == 0 and (moves == 0 or evenness(now) < evenness(was))


def how_to_play(bed):
    unpin = f"{bed.bin_dir / 'unpin'} --socket {bed.socket}"
    print(f"""
  It stays up. In another terminal, as root:
    alias unpin='{unpin}'
    unpin connections --watch
    unpin move CLIENT:PORT                  let one go; it comes back elsewhere
    unpin drain {SERVICE} 10.1.1.2:{PORT}      take a backend out
    unpin undrain {SERVICE} 10.1.1.2:{PORT}
    unpin counters
    ip netns exec {bed.netns('client')} bash   a shell on the client's host; the log is in {bed.log}
  ^C here ends it and removes everything.""", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def demonstrate(bed, keep):
    print(f"\n  One client with {CONNECTIONS} connections of very different rates, {BACKENDS} equal backends, "
          f"{RPS} RPCs a second.\n  A layer-4 balancer has spread the connections; this is where the RPCs go:\n")
    load = start(bed)
    backends = [f"{b['address']}:{b['port']}" for b in bed.unpin("backends")["backends"]]
    before = [time.time()]
    rates = watch(bed, backends, WATCH_S)
    before.append(time.time())
    print("\n  Un-pin: tell a few well-chosen connections to reconnect, and plan where they land\n")
    moves = move_until_even(bed, rates, backends)
    print()
    after = [time.time()]
    watch(bed, backends, WATCH_S)
    after.append(time.time())
    if keep:
        how_to_play(bed)
    load.signal(signal.SIGTERM)
    load.wait(15)
    return conclude(json.loads((bed.directory / "report.json").read_text()), before, after, moves)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it running, to play with, until ^C")
    options = parser.parse_args()
    try:
        with Testbed("unpin-demo", backends=BACKENDS) as bed:
            return 0 if demonstrate(bed, options.keep) else 1
    except KeyboardInterrupt:
        print("\n  stopped; everything is removed")
        return 130
    except (ProcessFailed, UnpinRefused, RuntimeError) as failure:
        print(f"tools/demo: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
