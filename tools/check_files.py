#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a source file is too long to read in one go, or does not open with its licence. Run by ctest."""
import os
import pathlib
import sys

MAX_LINES = 400
SKIPPED = {".git", "build", "node_modules", "__pycache__"}
SUFFIXES = {".c", ".h", ".cc", ".py", ".js", ".go", ".proto", ".sh"}


def sources(root):
    """Source files by suffix, and scripts without one by their #! line."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in SUFFIXES:
                yield path
            elif not path.suffix and os.access(path, os.X_OK) and path.read_bytes()[:2] == b"#!":
                yield path


def licences_of(path):
    """The kernel side must be GPL to load, and so must be a test's host program that includes it; the rest is Apache."""
    if path.parts[0] == "bpf" or path.name.endswith(".bpf.c"):
        return ["GPL-2.0"]
    return ["Apache-2.0", "GPL-2.0"] if path.parts[0] == "tests" else ["Apache-2.0"]


def violations(root):
    for path in sources(root):
        relative = path.relative_to(root)
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > MAX_LINES:
            yield f"{relative}: {len(lines)} lines, at most {MAX_LINES}: find the second thing hiding in it"
        first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        wanted = [f"SPDX-License-Identifier: {licence}" for licence in licences_of(relative)]
        if not first or not any(line in first[0] for line in wanted):
            yield f"{relative}: its first line must be '{' or '.join(wanted)}'"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "every file is short enough and licensed")
    sys.exit(bool(found))
