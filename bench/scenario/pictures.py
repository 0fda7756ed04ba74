# SPDX-License-Identifier: Apache-2.0
"""Pictures of kept runs: each backend's share over time, and how latencies are distributed."""

import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def runs(raw, scenario, seed=1):
    found = {}
    for file in sorted(raw.glob(f"{scenario}-*-{seed}.json")):
        kept = json.loads(file.read_text())
        if kept["row"]["scenario"] == scenario:
            found[kept["row"]["peer"]] = kept["report"]
    return found


def shares(axis, report):
    step = 5  # buckets of 100 ms
    names = sorted({name for bucket in report["series"] for name in bucket["backends"]})
    series = report["series"]
    times = [series[i]["begin_s"] for i in range(0, len(series) - step + 1, step)]
    for name in names:
        values = []
        for i in range(0, len(series) - step + 1, step):
            total = sum(sum(b["backends"].values()) for b in series[i:i + step]) or 1
            values.append(sum(b["backends"].get(name, 0) for b in series[i:i + step]) / total)
        axis.plot(times, values, label=name)
    axis.set_ylim(0, 1)


def draw(raw, into):
    into.mkdir(parents=True, exist_ok=True)
    scenarios = sorted({json.loads(file.read_text())["row"]["scenario"] for file in raw.glob("*.json")})
    for scenario in scenarios:
        found = runs(raw, scenario)
        if not found:
            continue
        figure, axes = plt.subplots(1, len(found), figsize=(3.2 * len(found), 2.8), sharey=True, squeeze=False)
        for axis, (peer, report) in zip(axes[0], found.items()):
            shares(axis, report)
            axis.set_title(peer, fontsize=9)
            axis.set_xlabel("s")
        axes[0][0].set_ylabel("share of a backend")
        axes[0][0].legend(fontsize=7)
        figure.suptitle(scenario)
        figure.tight_layout()
        figure.savefig(into / f"{scenario}-shares.png", dpi=90)
        plt.close(figure)
        figure, axis = plt.subplots(figsize=(5, 3.5))
        for peer, report in found.items():
            bins = report.get("latency", {}).get("histogram", [])
            total = sum(b["count"] for b in bins) or 1
            seen, x, y = 0, [], []
            for b in bins:
                seen += b["count"]
                x.append(b["upper_ms"])
                y.append(seen / total)
            axis.plot(x, y, label=peer)
        axis.set_xscale("log")
        axis.set_xlabel("latency from the scheduled time, ms")
        axis.set_ylabel("part of the RPCs")
        axis.legend(fontsize=7)
        axis.set_title(scenario)
        figure.tight_layout()
        figure.savefig(into / f"{scenario}-latency.png", dpi=90)
        plt.close(figure)
