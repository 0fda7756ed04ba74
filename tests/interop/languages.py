# SPDX-License-Identifier: Apache-2.0
"""How the interop clients and servers of each language are started."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UNPIN_BUILD_DIR", ROOT / "build/release"))
HERE = ROOT / "tests/interop"
STUBS = BUILD / "tests/interop/python"
PACKAGES = BUILD / "tests/interop/js"

LANGUAGES = ("cpp", "python", "go", "js")
PORT = 50051


def missing(language):
    """What must still be built or installed for it; empty if it is complete."""
    needed = {"cpp": [BUILD / "bin/interop-server-cpp", BUILD / "bin/interop-client-cpp"],
              "python": [STUBS / "echo_pb2_grpc.py"],
              "go": [BUILD / "bin/interop-go"],
              "js": [PACKAGES / "installed"]}[language]
    return [str(path) for path in needed if not path.exists()]


def _command(language, role):
    return {"cpp": [BUILD / f"bin/interop-{role}-cpp"],
            "python": ["env", f"PYTHONPATH={STUBS}", sys.executable, HERE / f"python/{role}.py"],
            "go": [BUILD / "bin/interop-go", role],
            "js": ["env", f"NODE_PATH={PACKAGES}/node_modules", "node", HERE / f"js/{role}.js"]}[language]


def server_argv(language, name, *options, port=PORT):
    return [*_command(language, "server"), "--name", name, "--port", port, *options]


def client_argv(language, target, *options):
    return [*_command(language, "client"), "--target", target, *options]
