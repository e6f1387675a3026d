"""A real `jobsight serve` in a process and a home of its own, and what it costs, for the benches."""

import json
import os
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self
from urllib.request import ProxyHandler, build_opener

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu(path: str) -> float:
    """CPU seconds by a `stat` file of a process or a thread."""
    with open(path) as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


class Server:
    """Runs while the `with` lasts."""

    def __init__(self, home: str) -> None:
        self._home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._open = build_opener(ProxyHandler({})).open

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jobsight", "serve", "--listen", f"127.0.0.1:{self.port}"],
            env={**os.environ, "JOBSIGHT_HOME": self._home},
            stdout=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while not self._answers():
            if time.monotonic() > end or self._process.poll() is not None:
                raise SystemExit("jobsight serve does not answer")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(120)

    def _answers(self) -> bool:
        try:
            self.ask("/api/v1/nodes")
        except OSError:
            return False
        return True

    def ask(self, path: str, timeout: float = 60.0) -> bytes:
        with self._open(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
            found: bytes = answer.read()
            return found

    def told(self, path: str) -> Any:
        return json.loads(self.ask(path))

    def cpu(self) -> tuple[float, float]:
        """CPU seconds until now: of the thread that speaks HTTP and checks messages, and of all others."""
        pid = self._process.pid
        first = cpu(f"/proc/{pid}/task/{pid}/stat")
        return first, cpu(f"/proc/{pid}/stat") - first

    def resident(self) -> int:
        """Bytes of memory."""
        with open(f"/proc/{self._process.pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE

    def waiting(self) -> tuple[int, float]:
        """Bytes of the log that are not digested yet, and seconds since the oldest of them were last added to."""
        size, oldest = 0, time.time()
        folder = os.path.join(self._home, "store", "log")
        for name in os.listdir(folder):
            try:
                found = os.stat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            size, oldest = size + found.st_size, min(oldest, found.st_mtime)
        return size, time.time() - oldest if size else 0.0
