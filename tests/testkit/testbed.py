# SPDX-License-Identifier: Apache-2.0
"""A client host, a gateway and backends as network namespaces of one machine, and Unpin on the gateway.

    with Testbed("t1") as bed:
        bed.start("b1", ["python3", "server.py"]).wait_for_line("listening")
        bed.start_agent(bed.config({"greeter": {"port": 50051}}))
        bed.unpin("connections")["connections"]

Leaves nothing behind, also after an exception, ^C or SIGTERM. What a killed run has left under the same prefix is
removed by the next one. Needs root. Used by tests/, bench/ and tools/demo; /usr/bin/python3, stdlib only.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from process import Process, run  # noqa: E402
from topology import CLIENT_ADDRESS, SNAT_ADDRESS, Topology, backend_address  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
VIP = "10.9.0.1"


class UnpinRefused(Exception):
    """The CLI ended with another status than 0."""

    def __init__(self, argv, status, stderr):
        super().__init__(f"unpin {' '.join(argv)}: exit {status}: {stderr.strip()}")
        self.status = status
        self.stderr = stderr


class Testbed:
    """Roles: "client", "gw", "b1", "b2", ... ; each is the namespace PREFIX-role.

    `impair` is (side, options) with side "client" or "backend": see tests/testkit/impair.cc for the options.
    """

    def __init__(self, prefix, backends=3, impair=None, build_dir=None):
        side, self._impair_options = impair or ("none", [])
        self.prefix = prefix
        self.topology = Topology(prefix, backends, side)
        self.bin_dir = Path(build_dir or os.environ.get("UNPIN_BUILD_DIR", ROOT / "build/release")) / "bin"
        self.directory = Path(f"/run/unpin-testbed-{prefix}")
        self.socket = self.directory / "unpind.sock"
        self.bpffs = self.directory / "bpf"
        self.log = self.directory / "log"
        self.agent = None
        self.impairments = []
        self._processes = []
        self._lock = None
        self._old_handler = None

    # ---- life ----

    def __enter__(self):
        self._take_lock()
        self._old_handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            self._remove()
            for directory in (self.bpffs, self.log, self.directory / "state"):
                directory.mkdir(parents=True)
            run(["mount", "-t", "bpf", "none", str(self.bpffs)])
            self.topology.build()
            self._start_impairment()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # A second ^C must not stop the cleaning up half-way.
        interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            self._remove()
        finally:
            signal.signal(signal.SIGINT, interrupts)
            signal.signal(signal.SIGTERM, self._old_handler)
            self._lock.close()

    def _take_lock(self):
        if os.geteuid() != 0:
            raise PermissionError("network namespaces need root: run this with sudo")
        # An abstract address is free again however its owner ended, and is no file to leave behind.
        self._lock = socket.socket(socket.AF_UNIX)
        try:
            self._lock.bind(f"\0unpin-testbed-{self.prefix}")
        except OSError:
            self._lock.close()
            raise RuntimeError(f"testbed {self.prefix} is in use by another process: choose another "
                               "prefix, or wait") from None

    def _remove(self):
        for process in reversed(self._processes):
            process.kill()
        self._processes.clear()
        self.topology.remove()
        if os.path.ismount(self.bpffs):
            run(["umount", str(self.bpffs)])
        if self.directory.exists():
            shutil.rmtree(self.directory)

    # ---- processes ----

    def netns(self, role):
        return self.topology.name(role)

    def inside(self, role, argv):
        """argv as it must be run to run in that namespace. (ip netns exec would hide the bpffs.)"""
        return ["nsenter", f"--net=/run/netns/{self.netns(role)}"] + [str(word) for word in argv]

    def start(self, role, argv, name=None):
        name = name or f"{role}-{Path(str(argv[0])).name}-{len(self._processes)}"
        process = Process(self.inside(role, argv), name=name, log=self.log / f"{name}.log")
        self._processes.append(process)
        return process

    def run(self, role, argv, timeout=60.0):
        """Runs a command to its end in a namespace and returns its stdout."""
        return run(self.inside(role, argv), timeout)

    # ---- Unpin ----

    def config(self, services, **settings):
        """A configuration. `services`: name -> {"port", "vip", "snat", "backends", "policy"}; all but the port optional.

        `backends` is a list of indices (default: every one) or of mappings as in the configuration file. `policy`: what
        else the file can say of a service; the agent moves nothing by itself unless that asks for it.
        """
        return {"interfaces": self.topology.gateway_interfaces(),
                "snat": {"addresses": [SNAT_ADDRESS]},
                "services": [self._service(name, service) for name, service in services.items()],
                **settings}

    def _service(self, name, service):
        backends = service.get("backends", range(1, self.topology.backends + 1))
        return {"name": name,
                "vip": f"{service.get('vip', VIP)}:{service['port']}",
                "snat": service.get("snat", True),
                "rebalance": {"enabled": False},
                **service.get("policy", {}),
                "backends": [backend if isinstance(backend, dict) else
                             {"address": f"{backend_address(backend)}:{service['port']}", "weight": 100}
                             for backend in backends]}

    def agent_argv(self, config_file, *options):
        return [self.bin_dir / "unpind", "--config", config_file, "--socket", self.socket,
                "--state-dir", self.directory / "state", "--bpffs", self.bpffs / "unpin", *options]

    def write_config(self, config, name="unpind.yaml"):
        """`config`: a mapping (JSON is YAML), or the text itself."""
        file = self.directory / name
        file.write_text(config if isinstance(config, str) else json.dumps(config, indent=2), encoding="utf-8")
        return file

    def start_agent(self, config, *options, timeout=30.0):
        """Starts unpind on the gateway and returns it when it serves."""
        argv = self.agent_argv(self.write_config(config), *options)
        self.agent = self.start("gw", argv, name=f"unpind-{len(self._processes)}")
        self.agent.wait_for_line(r"\bready\b", timeout)
        return self.agent

    def kill_agent(self, number=signal.SIGKILL):
        self.agent.signal(number)
        return self.agent.wait(10)

    def unpin(self, *words):
        """The answer of the CLI as parsed JSON; UnpinRefused if it refuses."""
        argv = [str(self.bin_dir / "unpin"), "--socket", str(self.socket), "--json", *map(str, words)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise UnpinRefused([str(word) for word in words], done.returncode, done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def command_wires(self, number, answer):
        """Sends a signal to every bad wire (see impair.cc) and waits until it says that it holds."""
        for wire in self.impairments:
            seen = sum(answer in line for line in wire.lines["stdout"])
            wire.signal(number)
            wire.wait_for_line(answer, skip=seen)

    def _start_impairment(self):
        for near, far in self.topology.impaired_links:
            argv = [self.bin_dir / "impair", near, far, *self._impair_options]
            self.impairments.append(self.start("wire", argv, name=f"impair-{near}"))
        for impairment in self.impairments:
            impairment.wait_for_line("joined")
