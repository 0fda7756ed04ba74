#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One row of the matrix in a bed of its own: prints what was measured as JSON. tests/interop/run starts it.

Exit status 1: the row could not be measured, and stderr says why.
"""

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "testkit")]

from admin import Admin  # noqa: E402
from driver import SETTLE_S, Driver, summarize  # noqa: E402
from languages import BUILD, LANGUAGES, PORT, client_argv, server_argv  # noqa: E402
from process import ProcessFailed  # noqa: E402
from testbed import VIP, Testbed  # noqa: E402

BACKENDS = 3
CONNECTIONS = 8
MIN_AGE_S = 1.0
DRAIN_S = 60
LOGS = BUILD / "interop-logs"


def run_row(args):
    wire = None
    if args.impair != "none":
        wire = (args.impair, ["--loss", "1", "--late", "5", "--delay-ms", "2", "--seed", str(args.seed)])
    prefix = f"{os.environ.get('UNPIN_TEST_PREFIX', 'tb')}int{args.slot}"
    with Testbed(prefix, BACKENDS, wire) as bed:
        try:
            return measure(bed, args)
        finally:
            keep = LOGS / f"{args.client}-{args.server}-{args.pattern}-{args.impair}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(bed.log, keep)


def measure(bed, args):
    for i in range(1, BACKENDS + 1):
        bed.start(f"b{i}", server_argv(args.server, f"b{i}")).wait_for_line("^listening")
    bed.start_agent(bed.config({"interop": {"port": PORT}}))
    # At work until all is measured, and no longer: SIGTERM lets what is under way end.
    client = bed.start("client", client_argv(
        args.client, f"{VIP}:{PORT}", "--pattern", args.pattern, "--connections", CONNECTIONS,
        "--seconds", MIN_AGE_S + args.seconds + 3 * SETTLE_S, "--seed", args.seed))
    with Admin(bed.socket) as admin:
        driver = Driver(admin, MIN_AGE_S, args.seed)
        driver.run(MIN_AGE_S + args.seconds)
        flows, spliceable = driver.spliceable()
        moves = driver.moves()
        counters = {name: value for name, value in admin.counters().items() if value}
    client.signal(signal.SIGTERM)
    status = client.wait(DRAIN_S)
    if status != 0:
        raise ProcessFailed(f"the client ended with status {status}: {client.stderr[-500:]}")
    report = json.loads(client.stdout)
    return {"rpcs": report["rpcs"], "failures": report["failed"], "corrupt": report["corrupt"],
            **summarize(moves), "flows": flows, "flows_spliceable": spliceable,
            "split_streams": report["split_streams"], "failure_details": report["failures"],
            "changes_of_server": len(report["landings"]) - CONNECTIONS, "rpc_p99_ms": report["p99_ms"],
            "rpc_max_ms": report["max_ms"], "seconds": args.seconds, "ticks": driver.ticks,
            "refused": dict(driver.refusals), "unexpected_refusals": driver.unexpected_refusals(),
            "counters": counters}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=LANGUAGES)
    parser.add_argument("server", choices=LANGUAGES)
    parser.add_argument("pattern")
    parser.add_argument("--impair", default="none")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slot", type=int, default=1, help="makes the names of this bed its own")
    try:
        json.dump(run_row(parser.parse_args()), sys.stdout)
    except ProcessFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
