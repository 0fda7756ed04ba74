#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a file includes what its folder may not know. Run by ctest; the map is explained in README.md."""
import pathlib
import re
import sys

# Folder -> the project's folders, or single headers, that it may include besides itself.
MAY_INCLUDE = {
    "bpf": set(),
    "userspace/base": set(),
    "userspace/model": {"userspace/base"},
    "userspace/policy": {"userspace/base", "userspace/model"},
    "userspace/datapath": {"userspace/base", "userspace/model", "bpf"},
    "userspace/monitor": {"userspace/base", "userspace/model", "userspace/policy", "proto/grpc/health/v1"},
    "userspace/rebalance": {"userspace/base", "userspace/model"},
    "userspace/agent": {"userspace/base", "userspace/model", "userspace/policy", "userspace/rebalance"},
    "userspace/admin": {"userspace/base", "userspace/model", "userspace/agent", "proto/unpin/v1"},
    "tools/unpin": {"userspace/base", "proto/unpin/v1"},
    "tools/unpin-gen": {"userspace/base/clock.h", "proto/unpin/gen/v1", "proto/xds/service/orca/v3"},
}
# Header of a library -> the only places that may include it. A place is a folder or one file.
ONLY_IN = {
    r"(bpf|xdp)/.*": {"bpf", "userspace/datapath"},
    r"linux/bpf\.h|linux/if_packet\.h|linux/rtnetlink\.h": {"bpf", "userspace/datapath"},
    r"netlink/.*": {"userspace/datapath"},
    r"yaml-cpp/.*": {"userspace/agent"},
    r"(grpcpp|grpc|google/protobuf)/.*": {"userspace/admin", "userspace/monitor", "userspace/main.cc", "tools/unpin", "tools/unpin-gen"},
    r"CLI/.*": {"userspace/main.cc", "tools/unpin", "tools/unpin-gen"},
    r"spdlog/.*": {"userspace/base", "userspace/agent", "userspace/main.cc"},
}
PROJECT = re.compile(r'^\s*#\s*include\s+"((?:bpf|userspace|proto|tools|tests|bench)/[^"]+)"', re.MULTILINE)
LIBRARY = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"((?:CLI|bpf|google|grpc|grpcpp|netlink|spdlog|xdp|yaml-cpp)/[^"]+)")',
                     re.MULTILINE)


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in {".c", ".h", ".cc"})


def project_violations(root):
    for folder, allowed in MAY_INCLUDE.items():
        for path in sources(root / folder):
            for target in PROJECT.findall(path.read_text()):
                inside = str(pathlib.PurePath(target).parent)
                if inside != folder and inside not in allowed and target not in allowed:
                    yield f"{path.relative_to(root)}: {folder} may not include {target}"


def library_violations(root):
    for path in sources(root / "bpf") + sources(root / "userspace") + sources(root / "tools"):
        relative = path.relative_to(root)
        places = {str(relative), *map(str, relative.parents)}
        for angled, quoted in LIBRARY.findall(path.read_text()):
            target = angled or quoted
            if quoted and (root / quoted).parent.is_dir() and quoted.startswith("bpf/"):
                continue  # our own bpf/ folder: the other rule's business
            for pattern, allowed in ONLY_IN.items():
                if re.fullmatch(pattern, target) and not places & allowed:
                    yield f"{relative}: only {', '.join(sorted(allowed))} may include {target}"


def unknown_folders(root):
    """A new folder must take its place in the map before it can be built on."""
    for path in sorted((root / "userspace").iterdir()):
        if path.is_dir() and f"userspace/{path.name}" not in MAY_INCLUDE:
            yield f"userspace/{path.name}: not in the map of {pathlib.Path(__file__).name}"


def violations(root):
    yield from unknown_folders(root)
    yield from project_violations(root)
    yield from library_violations(root)


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "no file includes what it may not know")
    sys.exit(bool(found))
