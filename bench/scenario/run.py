# SPDX-License-Identifier: Apache-2.0
"""One scenario, one peer, one seed: sets it up, lets it happen, takes it down. All of them interleaved, so that a slow
minute of the machine hits everybody."""

import json
import os
import signal
import sys
import time

from definitions import DEADLINE_S, SCENARIOS, whale_rates
from peers import PEERS, PORT
from score import (best_assignment, counts_between, last_reply, max_over_mean, noise, recovery, seconds_to_balance)
from testbed import Testbed

BUCKET = "100ms"
LEAD_S = 1.5  # from starting the generator to the load: time to connect


def serve(bed, i, backend, options):
    server = bed.start(f"b{i}", [bed.bin_dir / "unpin-gen", "serve", "--listen", f"0.0.0.0:{PORT}", "--name", f"b{i}",
                                 "--workers", backend.workers, "--service-time", f"{backend.service_ms}ms", *options])
    server.wait_for_line("ready on")
    return server


def act(bed, peer, servers, action):
    if action.verb == "add":
        peer.add(list(action.backends))
        return
    for i in action.backends:
        if action.verb == "drain":
            peer.drain(i)
        elif action.verb == "term":
            servers[i].signal(signal.SIGTERM)
        elif action.verb == "kill":
            servers[i].signal(signal.SIGKILL)
        elif action.verb == "cut":
            # The host goes silent; the gateway's end keeps its carrier, as behind a switch.
            bed.run(f"b{i}", ["nft", "table ip cut { chain i { type filter hook input priority 0; drop; }; "
                              "chain o { type filter hook output priority 0; drop; }; }"])


def run_one(name, peer_name, seed, quick):
    """(row, report)"""
    scenario = SCENARIOS[name]
    seconds = scenario.quick_seconds if quick else scenario.seconds
    prefix = os.environ.get("UNPIN_TEST_PREFIX", "bench") + "-sc"
    with Testbed(prefix, backends=len(scenario.backends)) as bed:
        peer = PEERS[peer_name](bed, scenario)
        servers = {i: serve(bed, i, backend, peer.serve_options) for i, backend in enumerate(scenario.backends, 1)}
        peer.start()
        settle = 2 if "--settle" in scenario.load else 0
        begin = time.time() + LEAD_S + settle
        options = [str(option) for option in scenario.load if option not in ("--settle", "2s")]
        shuffle = ["--shuffle-seed", seed] if scenario.shuffles else []
        load = bed.start("client", [bed.bin_dir / "unpin-gen", "grpc", "--target", peer.target(), *options, *shuffle,
                                    *peer.load_options, "--seed", seed, "--duration", f"{seconds}s", "--deadline",
                                    f"{DEADLINE_S}s", "--start-at", f"{begin:.3f}", "--bucket", BUCKET, "--backends",
                                    len(scenario.at_first()), "--no-live", "--json", bed.directory / "report.json"])
        before = 0  # moves that have nothing to do with what is measured
        for action in scenario.actions:
            time.sleep(max(0.0, begin + action.at - time.time()))
            if action is scenario.actions[0]:
                before = peer.moves() or 0
            act(bed, peer, servers, action)
        status = load.wait(seconds + LEAD_S + settle + DEADLINE_S + 20)
        if status != 0:
            raise RuntimeError(f"{name}, {peer_name}: the generator: {load.stderr}")
        report = json.loads((bed.directory / "report.json").read_text())
        moves = peer.moves()
        return row_of(name, peer_name, seed, seconds, report, None if moves is None else moves - before), report


def row_of(name, peer, seed, seconds, report, moves):
    scenario = SCENARIOS[name]
    totals, latency = report["totals"], report.get("latency", {})
    names = [f"b{i}" for i in range(1, len(scenario.backends) + 1)]
    if moves is None and PEERS[peer].one_to_one:
        moves = totals.get("reconnects", 0)
    row = {"scenario": name, "peer": peer, "seed": seed, "max_over_mean": None, "best_possible": None, "seconds_to_balance": None,
           "moves": moves, "rpcs": totals["sent"],
           "failures": totals.get("failed", 0), "mean_ms": latency.get("mean_ms"), "p50_ms": latency.get("p50_ms"),
           "p99_ms": latency.get("p99_ms"), "worst_ms": latency.get("worst_ms"), "recovery_s": None}
    report["totals"].setdefault("failed", 0)
    since = scenario.actions[0].at if scenario.actions else 0.0
    if scenario.kind == "even":
        row["best_possible"] = round(best_assignment(whale_rates(), len(names)), 3)
        row["max_over_mean"] = max_over_mean(counts_between(report, 3, seconds, names))
        row["noise"] = round(noise(report, 3, seconds, names), 4)
        limit = row["best_possible"] + 0.05 + 2 * noise(report, seconds - 2, seconds, names)
        row["seconds_to_balance"] = seconds_to_balance(report, names, 0.0, limit, 2.0, 2, seconds)
    elif scenario.kind == "scale":
        row["best_possible"] = 1.0
        row["max_over_mean"] = max_over_mean(counts_between(report, since + 2, seconds, names))
        row["seconds_to_balance"] = seconds_to_balance(report, names, since, 1.2, 1.0, 3, seconds)
    elif scenario.kind == "drain":
        row["recovery_s"] = last_reply(report, "b1", since)
    elif scenario.kind == "loss":
        row["recovery_s"] = recovery(report, since)
    return row


def run_all(options):
    rows = []
    if options.raw:
        options.raw.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for name in options.only:
            for peer in options.peers:
                row, report = run_one(name, peer, seed, options.quick)
                rows.append(row)
                if options.json:  # after each: what was measured survives an interruption
                    options.json.write_text(json.dumps({"rows": rows}, indent=1))
                print(f"{name:>14} {peer:<20} seed {seed}: " + "  ".join(
                    f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                    for key, value in row.items() if value is not None and key not in ("scenario", "peer", "seed")), flush=True)
                if options.raw:
                    file = options.raw / f"{name}-{peer}-{seed}.json"
                    file.write_text(json.dumps({"row": row, "report": slim(report)}))
    sys.stdout.flush()
    return rows


def slim(report):
    """Without what no picture or score needs."""
    return {key: value for key, value in report.items() if key not in ("connections", "failures")}
