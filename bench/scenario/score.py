# SPDX-License-Identifier: Apache-2.0
"""From a generator's report to a row, and from a row to the bars that it misses. Pure."""

import itertools
import math


def max_over_mean(counts):
    """Highest over mean; 1.00 is even. `counts`: of every backend that should share the load."""
    total = sum(counts)
    return max(counts) * len(counts) / total if total else None


def best_assignment(rates, backends):
    """The lowest max/mean that any assignment of whole connections to equal backends can reach: all are tried."""
    best = math.inf
    rates = sorted(rates, reverse=True)
    # Backends are equal: the first connection may as well be on the first.
    for rest in itertools.product(range(backends), repeat=len(rates) - 1):
        loads = [0.0] * backends
        loads[0] = rates[0]
        for rate, backend in zip(rates[1:], rest):
            loads[backend] += rate
        best = min(best, max(loads))
    return best * backends / sum(rates)


def counts_between(report, begin, end, names):
    """Replies of each of `names` to RPCs scheduled in [begin, end) seconds of the load, in whole buckets."""
    width = report["bucket_s"]
    inside = [b for b in report["series"] if b["begin_s"] >= begin - 1e-6 and b["begin_s"] + width <= end + 1e-6]
    return [sum(b["backends"].get(name, 0) for b in inside) for name in names]


def seconds_to_balance(report, names, since, limit, window, running, end):
    """From `since` to the first of `running` consecutive windows whose max/mean is at or under `limit`, looked for in steps
    of a bucket; None if there is none before `end`."""
    width = report["bucket_s"]
    start = since
    while start + running * window <= end + 1e-6:
        parts = [counts_between(report, start + i * window, start + (i + 1) * window, names) for i in range(running)]
        values = [max_over_mean(part) for part in parts]
        if all(value is not None and value <= limit for value in values):
            return round(start - since, 3)
        start += width
    return None


def noise(report, begin, end, names):
    """One standard error of the highest count over its mean: arrivals are Poisson."""
    counts = counts_between(report, begin, end, names)
    return max_over_mean(counts) / math.sqrt(max(counts)) if any(counts) else 0.0


def last_reply(report, name, since):
    """Seconds from `since` to the end of the last bucket in which `name` got an RPC that it answered."""
    ends = [b["begin_s"] + report["bucket_s"] for b in report["series"] if b["backends"].get(name, 0)]
    return max(0.0, round(max(ends, default=since) - since, 3))


def recovery(report, since):
    """Seconds from `since` to when the last RPC that failed had been scheduled."""
    if report["totals"]["failed"] == 0:
        return 0.0
    return max(0.0, round(report["failures"]["last_scheduled_s"] - since, 3))


# The last column of the table of scenarios, and the bars of the issue: what Unpin must reach.
BARS = {
    "S1": [("max_over_mean", lambda row: row["best_possible"] + 0.05 + 2 * row["noise"]), ("failures", lambda row: 0),
           ("seconds_to_balance", lambda row: 2.0)],
    "S2": [("seconds_to_balance", lambda row: 1.0), ("moves", lambda row: 8), ("failures", lambda row: 0)],
    "S3-early": [("mean_ms", lambda row: 150), ("worst_ms", lambda row: 2500), ("failures", lambda row: 0)],
    "S3-lazy": [("mean_ms", lambda row: 450), ("worst_ms", lambda row: 6500)],
    "S4": [("recovery_s", lambda row: 2.0), ("failures", lambda row: 0)],
    "S5": [("failures", lambda row: 6), ("recovery_s", lambda row: 0.1)],
    "S5b": [("failures", lambda row: 300), ("recovery_s", lambda row: 1.5)],
}


def bars_of(scenario):
    return BARS.get(scenario) or BARS[scenario.split("-")[0]]


def missed_bars(row):
    for column, limit in bars_of(row["scenario"]):
        most, value = limit(row), row[column]
        if value is None or value > most:
            yield f"{row['scenario']} seed {row['seed']}: {column} is {value}, must be at most {most:.3f}"
    if row["scenario"] == "S2" and row["moves"] is not None and row["moves"] < 8:
        yield f"S2 seed {row['seed']}: only {row['moves']} moves: it has not been balanced by moves"
