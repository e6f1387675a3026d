"""What several suites share: stores, servers and agents that are started and stopped for real."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.schema.message import Message


def wait_until(happens: Callable[[], object], seconds: float = 30.0, what: str = "") -> None:
    """Wait for something, and fail with a sentence if it does not come."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what or happens}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Program:
    """`jobsight VERB …` as a process of its own, with a home of its own."""

    def __init__(self, home: Path, *arguments: str) -> None:
        environment = {**os.environ, "JOBSIGHT_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jobsight", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self) -> None:
        """As the kernel or a power cut would."""
        self.process.kill()
        self.process.communicate()

    def finish(self) -> tuple[int, str]:
        """Wait until it ends by itself."""
        output, _ = self.process.communicate(timeout=30)
        return self.process.returncode, output

    def stop(self) -> tuple[int, str]:
        """As an administrator would; exit code and what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.finish()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs in a home under tmp_path; whatever the test leaves running is killed."""
    started: list[Program] = []

    def begin(*arguments: str) -> Program:
        started.append(Program(tmp_path / "home", *arguments))
        return started[-1]

    yield begin
    for program in started:
        if program.process.poll() is None:
            program.kill()


@pytest.fixture
def serve(start: Callable[..., Program], tmp_path: Path) -> Callable[..., tuple[Program, str]]:
    """Starts a server and waits until it answers: the program and its address."""

    def begin(port: int | None = None) -> tuple[Program, str]:
        port = port or free_port()
        program = start("serve", "--listen", f"127.0.0.1:{port}", "--store", str(tmp_path / "store"))
        url = f"http://127.0.0.1:{port}"
        wait_until(
            lambda: answers(f"{url}/api/nodes") or program.process.poll() is not None, what="the server answers"
        )
        assert program.process.poll() is None, program.process.communicate()[0]
        return program, url

    return begin


def said(message: Message) -> dict[str, list[Any]]:
    """A message's columns as the server has them: those that are missing in every row are not sent."""
    return {name: list(values) for name, values in message.rows.items() if any(value is not None for value in values)}
