"""A Prometheus exporter as a contender: one scrape is one sample."""

import http.client
import os
import shutil
import socket
import subprocess
import time
from typing import Self

from bench.cost.program import cpu_clock, pinned

PATIENCE = 30.0
# As the program's own documentation begins: every process, grouped by its name.
ALL_BY_NAME = "process_names:\n  - name: '{{.Comm}}'\n    cmdline: ['.+']\n"


class Exporter:
    """One that listens on a port of its own while in use."""

    def __init__(self, cpu: int, path: str, *options: str) -> None:
        self._port = free_port()
        self._command = pinned(cpu, (path, *options, f"--web.listen-address=127.0.0.1:{self._port}"))
        self._spent = 0.0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        end = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise SystemExit(f"{' '.join(self._command)}: does not answer")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _answers(self) -> bool:
        try:
            return self.scrape() > 0
        except OSError:
            return False

    def scrape(self) -> int:
        """The size of the page."""
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            link.request("GET", "/metrics")
            return len(link.getresponse().read())
        finally:
            link.close()

    def sample(self) -> float:
        """CPU seconds from the last page to this one: its garbage collector works in between."""
        self.scrape()
        before, self._spent = self._spent, cpu_clock(self._process.pid)
        return self._spent - before


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def found(given: str | None, name: str) -> str | None:
    """The program that was named, else the one on the path."""
    return given or shutil.which(name) or next(filter(os.path.exists, (f"/usr/sbin/{name}",)), None)
