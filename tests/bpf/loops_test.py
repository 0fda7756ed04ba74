#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No plain instruction falls through into the head of a loop around it: Linux 6.1 refuses that ("back-edge from insn"),
newer kernels do not, and whether clang lays a loop out so is luck. Usage: loops_test.py OBJECT..."""

import re
import subprocess
import sys


def functions(path):
    """Name -> {index: instruction} of an object file."""
    listing = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True)
    found, current = {}, None
    for line in listing.stdout.splitlines():
        if label := re.match(r"[0-9a-f]+ <(\S+)>:", line):
            if not label[1].startswith("LBB"):
                current = found.setdefault(label[1], {})
        elif (instruction := re.match(r"\s+(\d+):\s+(.*)", line)) and current is not None:
            current[int(instruction[1])] = instruction[2]
    return found


def successors(code, following, index):
    """(next index, whether it may close a loop), in the order in which the kernel goes."""
    text = code[index]
    jump = re.search(r"goto ([+-]\d+)", text)
    if text.startswith("exit"):
        return
    if not (jump and text.startswith("goto")) and index in following:
        yield following[index], jump is not None
    if jump:
        yield index + int(jump[1]) + 1, True


def refused_edges(code):
    """Depth first, as check_cfg() of Linux 6.1."""
    order = sorted(code)
    following = dict(zip(order, order[1:]))
    open_, done = {order[0]}, set()
    path = [(order[0], successors(code, following, order[0]))]
    while path:
        index, edges = path[-1]
        for target, may_loop in edges:
            if target in open_ and not may_loop:
                yield index, target
            elif target not in open_ and target not in done:
                open_.add(target)
                path.append((target, successors(code, following, target)))
                break
        else:
            open_.remove(index)
            done.add(index)
            path.pop()


refused = [f"{path}: {name}: from instruction {a} to {b}: {code[a]}"
           for path in sys.argv[1:] for name, code in functions(path).items() if code for a, b in refused_edges(code)]
print("\n".join(refused) or "no loop that Linux 6.1 refuses")
sys.exit(bool(refused))
