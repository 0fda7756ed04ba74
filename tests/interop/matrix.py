# SPDX-License-Identifier: Apache-2.0
"""Which client meets which server with which pattern, and the bars a row must clear."""

from dataclasses import dataclass

from languages import LANGUAGES

# unary: calls one after another, 1 byte to 32 KiB · async: the same, many at once through the callback API · stream: 20
# replies up to 20 kB · bulk: replies of 1 MiB · long: 2 s streams beside unary calls.
PATTERNS = {"cpp": ("unary", "async", "stream", "bulk", "long"),
            "python": ("unary", "stream", "bulk", "long"),
            "go": ("unary", "stream", "bulk", "long"),
            "js": ("unary", "stream", "bulk", "long")}


@dataclass(frozen=True)
class Row:
    client: str
    server: str
    pattern: str


def full():
    """Every client and pattern against the C++ server, and against one other in turn."""
    rows = [Row(client, "cpp", pattern) for client in LANGUAGES for pattern in PATTERNS[client]]
    others = ("go", "python", "js")
    return rows + [Row(row.client, others[i % 3], row.pattern) for i, row in enumerate(rows)]


def quick():
    return [Row("cpp", "cpp", "unary"), Row("cpp", "go", "async"), Row("cpp", "python", "bulk"),
            Row("python", "go", "stream"), Row("go", "cpp", "bulk"), Row("go", "js", "long"),
            Row("js", "cpp", "unary"), Row("js", "python", "long")]


def misses(row):
    """What of the bars the row misses; empty: it has passed."""
    if "error" in row:
        return [row["error"]]
    found = []
    if row["failures"]:
        found.append(f"{row['failures']} RPCs failed: {row['failure_details'][:3]}")
    if row["corrupt"]:
        found.append(f"{row['corrupt']} payloads were altered")
    if row["split_streams"]:
        found.append(f"{row['split_streams']} streams changed their server")
    per_second = 3 if row["pattern"] == "bulk" else 10  # far below what a crowded machine does, far above a client that hangs
    if row["rpcs"] < per_second * row["seconds"]:
        found.append(f"only {row['rpcs']} RPCs in {row['seconds']:g} s: the client hung")
    if row["acknowledged"] < row["moves"]:
        found.append(f"{row['moves'] - row['acknowledged']} moves not acknowledged: {row['unfinished']}")
    if row["moves"] < row["ticks"] / 2:
        found.append(f"only {row['moves']} moves in {row['ticks']} ticks: refused {row['refused']}")
    if row["unexpected_refusals"]:
        found.append(f"moves refused: {row['unexpected_refusals']}")
    # What the client saw, not what unpind says: a move that reconnected has changed the connection's server. (Of two
    # at a time, either connection may take either pin: pins are by client address.)
    if row["changes_of_server"] < 0.9 * row["reconnected_alone"]:
        found.append(f"the client changed servers {row['changes_of_server']} times in {row['reconnected_alone']} moves "
                     f"beside which there was no other")
    if not row["flows"] or row["flows_spliceable"] < 0.99 * row["flows"]:
        found.append(f"{row['flows_spliceable']} of {row['flows']} flows spliceable at the end")
    return found
