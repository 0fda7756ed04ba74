#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo itself; tools/demo builds what it runs. gRPC servers, one client program with connections of very different
rates, and a gateway between them, each in a network namespace. The agent un-pins by itself: first it is held back, then
let go, then backends are added, killed and drained. Exit status 0: no RPC failed, and the load got even each time."""

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
from topology import backend_address  # noqa: E402

SERVICE, PORT, CONNECTIONS, RATES, RPS = "greeter", 50051, 24, "zipf:0.6", 600
AT_FIRST, BACKENDS = 3, 5
SETTLE_S, WATCH_S = 2, 5   # after each change: time to act, then how long what came of it is shown and counted
EVEN = 1.15                # highest / mean, as a person would call it even: a few seconds of Poisson arrivals differ by as much
POLICY = {"rebalance": {"enabled": True},
          "health": {"kind": "tcp", "interval": "200ms", "timeout": "200ms"}}


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


def address(i):
    return f"{backend_address(i)}:{PORT}"


class Phase:
    """What is shown between two changes; `serving`: the backends that should share the load."""

    def __init__(self, title, serving):
        self.title, self.serving = title, serving
        self.begin = self.end = 0.0


def watch(bed, phase, settle=SETTLE_S):
    """Shows the live table, and notes the times between which the client's own counts are to be read."""
    sight, table = Sight(bed), Table([address(i) for i in range(1, BACKENDS + 1)])
    sight.rates()
    for tick in range(settle + WATCH_S):
        if tick == settle:
            phase.begin = time.time()
        time.sleep(1)
        table.show(sight.rates(), last=tick == settle + WATCH_S - 1)
    phase.end = time.time()
    return phase


# ---- acting ----

def show_new_moves(bed, known):
    moves = [m for m in bed.unpin("moves", "--limit", 1000).get("moves", []) if m["id"] not in known]
    for m in reversed(moves[:6] if len(moves) > 8 else moves):
        print(f"    {m['client']:<18} {m['from']} -> {m['to']}   {m['state'].lower()} ({m['reason']})")
    if len(moves) > 8:
        print(f"    and {len(moves) - 6} more")
    known.update(m["id"] for m in moves)
    print(flush=True)
    return len(moves)


def serve(bed, i):
    server = bed.start(f"b{i}", [bed.bin_dir / "unpin-gen", "serve", "--listen", f"0.0.0.0:{PORT}", "--name", f"b{i}",
                                 "--workers", "16", "--service-time", "5ms"])
    server.wait_for_line("ready on")
    return server


def start(bed):
    servers = {i: serve(bed, i) for i in range(1, BACKENDS + 1)}
    bed.start_agent(bed.config({SERVICE: {"port": PORT, "backends": range(1, AT_FIRST + 1), "policy": POLICY}}))
    bed.unpin("rebalance", "--pause")
    load = bed.start("client", [bed.bin_dir / "unpin-gen", "grpc", "--target", f"{VIP}:{PORT}",
                                "--connections", CONNECTIONS, "--rates", RATES, "--rps", RPS, "--retry", "--duration", "24h",
                                "--backends", BACKENDS, "--json", bed.directory / "report.json"], name="load")
    deadline = time.monotonic() + 10
    while len(bed.unpin("connections").get("connections", [])) < CONNECTIONS:
        if not load.running() or time.monotonic() > deadline:
            raise ProcessFailed(f"the client has not opened its connections: {load.stderr}")
        time.sleep(0.1)
    return servers, load


# ---- the proof: what the client itself counted ----

def counted(report, phase):
    """Replies of each backend in the whole seconds of the load within the phase."""
    began = report["began_unix_s"]
    buckets = [b for b in report["series"] if began + b["begin_s"] >= phase.begin and
               began + b["begin_s"] + report["bucket_s"] <= phase.end]
    return {i: sum(b["backends"].get(f"b{i}", 0) for b in buckets) for i in range(1, BACKENDS + 1)}


def conclude(report, phases, moves):
    totals = report["totals"]
    print("\n  What the client counted" + " " * 12 + "".join(f"b{i:<7}" for i in range(1, BACKENDS + 1)) + "highest / mean of those that serve")
    good = totals["failed"] == 0
    for phase in phases:
        counts = counted(report, phase)
        total = max(sum(counts.values()), 1)
        even = evenness([counts[i] for i in phase.serving])
        print(f"    {phase.title:<30} " + "".join(f"{count / total:<8.1%}" for count in counts.values()) + f"{even:.2f}")
        good = good and (phase is phases[0] or even <= EVEN)
    print(f"    RPCs: {totals['sent']} sent, {totals['failed']} failed; {moves} moves")
    return good


def how_to_play(bed):
    unpin = f"{bed.bin_dir / 'unpin'} --socket {bed.socket}"
    print(f"""
  It stays up. In another terminal, as root:
    alias unpin='{unpin}'
    unpin top --watch
    unpin rebalance --dry-run
    unpin undrain {SERVICE} {address(3)}
    unpin move CLIENT:PORT                  let one go; it comes back elsewhere
    unpin events
    ip netns exec {bed.netns('client')} bash   a shell on the client's host; the log is in {bed.log}
  ^C here ends it and removes everything.""", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def demonstrate(bed, keep):
    print(f"\n  One client with {CONNECTIONS} connections of very different rates, {AT_FIRST} equal backends, "
          f"{RPS} RPCs a second.\n  A layer-4 balancer has spread the connections, and Unpin is held back:\n")
    servers, load = start(bed)
    known, phases, moves = set(), [watch(bed, Phase("pinned", [1, 2, 3]), settle=0)], 0

    def change(text, title, serving):
        nonlocal moves
        print(f"\n  {text}\n", flush=True)
        phases.append(watch(bed, Phase(title, serving)))
        moves += show_new_moves(bed, known)

    bed.unpin("rebalance", "--resume")
    change("Let it go: a few well-chosen connections are told to reconnect, where the plan wants them", "un-pinned", [1, 2, 3])
    for i in (4, 5):
        bed.unpin("add", "backend", SERVICE, address(i))
    change("Two backends are added", "two added", [1, 2, 3, 4, 5])
    servers[2].signal(signal.SIGKILL)
    change(f"The server of {address(2)} is killed", "b2 killed", [1, 3, 4, 5])
    bed.unpin("drain", SERVICE, address(3))
    change(f"{address(3)} is drained", "b3 drained", [1, 4, 5])
    if keep:
        how_to_play(bed)
    load.signal(signal.SIGTERM)
    load.wait(15)
    return conclude(json.loads((bed.directory / "report.json").read_text()), phases, moves)


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
