#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/packet_cost --quick measures every kind of packet, and each meets its verdict. Says nothing about speed."""
import json
import pathlib
import subprocess
import sys
import tempfile

WANTED = {
    "floor: swap MACs, transmit", "floor: and find the flow, count", "c2s pure ACK", "c2s 1448 B inside a frame",
    "s2c 1448 B inside a frame", "s2c 1448 B, one header", "s2c 148 B, 3 frames", "s2c 1448 B, 40 frames",
    "c2s pure ACK, spliced", "s2c 1448 B inside a frame, spliced", "c2s 1448 B, not HTTP/2", "s2c 1448 B, not HTTP/2",
    "new connection, a packet of three", "SYN flood", "not ours: TCP, no service", "not ours: UDP",
    "mid-stream of no connection: reset",
}
FIELDS = {"name", "flows", "min_ns", "median_ns", "ratio"}


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rows.json")
        subprocess.run([sys.argv[1], "--quick", "--json", path], check=True)
        result = json.loads(path.read_text())
    names = {row["name"] for row in result["rows"]}
    assert WANTED <= names, f"missing: {WANTED - names}"
    assert result["floor_ns"] > 0
    for row in result["rows"]:
        assert FIELDS <= row.keys() and 0 < row["min_ns"] <= row["median_ns"] and row["ratio"] > 0, row


if __name__ == "__main__":
    main()
