# SPDX-License-Identifier: Apache-2.0
"""A child process whose output can be awaited: no sleeping until something is "surely up"."""

import re
import signal
import subprocess
import threading
import time


class ProcessFailed(Exception):
    """A command failed, or a process did not say what it was expected to say."""


class Process:
    """Runs argv. Each line of its output is kept, and written to `log` if one is given."""

    def __init__(self, argv, name=None, log=None):
        self.argv = argv
        self.name = name or argv[0]
        self.lines = {"stdout": [], "stderr": []}
        self._log = open(log, "a", encoding="utf-8", buffering=1) if log else None
        self._changed = threading.Condition()
        # A session of its own: ^C reaches the testbed alone, which then ends things in order.
        self._popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, errors="replace",
                                       start_new_session=True)
        self._readers = [
            threading.Thread(target=self._read, args=(self._popen.stdout, "stdout"), daemon=True),
            threading.Thread(target=self._read, args=(self._popen.stderr, "stderr"), daemon=True)]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self):
        return self._popen.pid

    @property
    def stdout(self):
        return "\n".join(self.lines["stdout"])

    @property
    def stderr(self):
        return "\n".join(self.lines["stderr"])

    def running(self):
        return self._popen.poll() is None

    def wait_for_line(self, pattern, timeout=20.0, skip=0):
        """Returns the match of the first output line, old or new, in which the pattern is found.

        `skip`: so many such lines are passed over.
        """
        expression = re.compile(pattern)
        deadline = time.monotonic() + timeout
        seen = {"stdout": 0, "stderr": 0}
        with self._changed:
            while True:
                for stream, lines in self.lines.items():
                    while seen[stream] < len(lines):
                        match = expression.search(lines[seen[stream]])
                        seen[stream] += 1
                        if match and skip == 0:
                            return match
                        skip -= match is not None
                ended = not any(reader.is_alive() for reader in self._readers)
                left = deadline - time.monotonic()
                if ended or left <= 0:
                    what = f"ended ({self.wait(1)})" if ended else f"was silent for {timeout:g} s"
                    raise ProcessFailed(f"{self.name} {what} before it printed /{pattern}/: "
                                        f"{self._tail()}")
                self._changed.wait(min(left, 0.5))

    def wait(self, timeout):
        """The exit status, once all output has been read."""
        try:
            status = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ProcessFailed(f"{self.name} did not end within {timeout:g} s: "
                                f"{self._tail()}") from None
        for reader in self._readers:
            reader.join(5)  # a grandchild may hold the pipe open
        if self._log and not any(reader.is_alive() for reader in self._readers):
            self._log.close()
        return status

    def signal(self, number):
        if self.running():
            self._popen.send_signal(number)

    def stop(self, timeout=5.0):
        """SIGTERM, and SIGKILL to what does not obey within the timeout. Returns the exit status."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except ProcessFailed:
            return self.kill()

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.wait(10)

    def _read(self, pipe, stream):
        with pipe:
            for line in pipe:
                with self._changed:
                    self.lines[stream].append(line.rstrip("\n"))
                    if self._log:
                        print(line, end="", file=self._log)
                    self._changed.notify_all()

    def _tail(self):
        return "\n  ".join([""] + (self.lines["stdout"] + self.lines["stderr"])[-15:])


def run(argv, timeout=60.0, stdin=None):
    """Runs a command to its end and returns its stdout; ProcessFailed names the command."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout,
                          check=False)
    if done.returncode != 0:
        raise ProcessFailed(f"{' '.join(argv)}: exit {done.returncode}: "
                            f"{(done.stderr or done.stdout).strip()}")
    return done.stdout
