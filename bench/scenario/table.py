# SPDX-License-Identifier: Apache-2.0
"""Rows as the page that is committed: one table a scenario, and what Unpin missed in plain words."""

from score import bars_of, missed_bars

COLUMNS = ("peer", "seed", "max_over_mean", "best_possible", "seconds_to_balance", "moves", "rpcs", "failures", "mean_ms", "p50_ms",
           "p99_ms", "worst_ms", "recovery_s")


def text(value):
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def section(scenario, rows, pictures):
    bars = ", ".join(column for column, _ in bars_of(scenario))
    lines = [f"## {scenario}", "", f"Unpin is held to: {bars}.", "", "| " + " | ".join(COLUMNS) + " |", "| --- " * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(text(row[column]) for column in COLUMNS) + " |" for row in rows]
    if pictures:
        lines += ["", f"![shares]({pictures}/{scenario}-shares.png) ![latency]({pictures}/{scenario}-latency.png)"]
    return lines + [""]


def page(rows, preface, pictures=None):
    """`pictures`: where they lie, as seen from the page."""
    lines = ["# Scenarios", "", preface, ""]
    missed = [line for row in rows if row["peer"] == "unpin" for line in missed_bars(row)]
    lines += ["Bars that Unpin missed in this run:", ""] + [f"- {line}" for line in missed or ["none"]] + [""]
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        lines += section(scenario, [row for row in rows if row["scenario"] == scenario], pictures)
    return "\n".join(lines)
