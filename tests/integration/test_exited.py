"""Exit records against a known truth: storms of processes that say how many they were and what they used."""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.collect import exited
from jobsight.collect.exited import Exited, Watch
from jobsight.drivers import taskstats
from jobsight.drivers.taskstats import Source
from jobsight.host import Host
from tests.conftest import Program, wait_until

STORM = Path(__file__).parent / "storm.py"
COLLECTOR = catalogue.collector("exited")
NET_ADMIN = 12


@pytest.fixture
def host() -> Iterator[Host]:
    """This machine, listened to."""
    found = Host()
    COLLECTOR.rows(found)
    if found.missed()["processes"] == "forbidden":
        if os.environ.get("CI") == "true":
            pytest.fail("exit records need CAP_NET_ADMIN, and in CI they must be tested")
        pytest.skip("NO CAP_NET_ADMIN HERE, so exit records go untested")
    yield found
    found.close()


class Storm:
    """Processes of a name of their own that came and went, and what is known of them; their parent stays."""

    def __init__(self, count: int, seconds: float = 0.0, threads: int = 0) -> None:
        self.name = f"{os.getpid()}-{time.monotonic_ns() % 10**6}"[-15:]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(STORM), self.name, str(count), str(seconds), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout
        self.cpu = float(self.process.stdout.readline())

    def rows(self, host: Host) -> list[Exited]:
        return [row for row in COLLECTOR.rows(host) if row.command == self.name]

    def counted(self, host: Host, count: int) -> Exited:
        """Its one row when so many were counted, and no more came after."""
        wait_until(lambda: sum(row.processes for row in self.rows(host)) >= count, what=f"{count} processes")
        (row,) = self.rows(host)
        return row

    def end(self) -> None:
        self.process.communicate(timeout=30)


@pytest.mark.slow
def test_every_one_of_thousands_is_counted_in_its_job(host: Host) -> None:
    storm = Storm(3000)
    row = storm.counted(host, 3000)
    assert host.missed() == {}
    (parent,) = [row for row in catalogue.collector("process").rows(host) if row.pid == storm.process.pid]
    storm.end()
    assert row.processes == 3000
    assert (row.scheduler, row.job, row.owner) == (parent.scheduler, parent.job, parent.owner)
    assert row.memory_peak is not None
    assert 2**20 < row.memory_peak < 2**26


@pytest.mark.slow
def test_cpu_time_is_that_of_wait4(host: Host) -> None:
    storm = Storm(150, 0.06)
    row = storm.counted(host, 150)
    storm.end()
    assert storm.cpu > 150 * 0.06
    assert row.cpu_user + row.cpu_system == pytest.approx(storm.cpu, rel=0.02)


@pytest.mark.slow
def test_process_of_many_threads_is_one_with_the_time_of_all(host: Host) -> None:
    storm = Storm(40, 0.05, threads=3)
    row = storm.counted(host, 40)
    storm.end()
    assert row.processes == 40
    assert storm.cpu > 40 * 3 * 0.05
    assert row.cpu_user + row.cpu_system == pytest.approx(storm.cpu, rel=0.04)
    names = {row.command for row in COLLECTOR.rows(host)}
    assert f"t{storm.name}"[:15] not in names, "a thread was taken for a process"


@pytest.mark.slow
def test_long_process_ends_with_the_time_it_ran(host: Host) -> None:
    storm = Storm(1, 1.5)
    row = storm.counted(host, 1)
    storm.end()
    assert row.cpu_user + row.cpu_system == pytest.approx(storm.cpu, rel=0.01)


@pytest.mark.slow
def test_records_that_found_no_room_are_counted_and_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exited, "Source", partial(Source, room=1))
    narrow = Host()
    COLLECTOR.rows(narrow)
    assert narrow.missed() == {"processes": "absent"}
    storm = Storm(3000)
    storm.counted(host, 3000)
    storm.end()
    listener = narrow.keep(Watch).listener
    assert listener is not None
    wait_until(lambda: listener.dropped, what="a loss is noticed")
    seen = sum(row.processes for row in storm.rows(narrow))
    assert narrow.missed() == {"processes": "failed"}
    assert 0 < seen < 3000
    assert seen + listener.dropped >= 3000
    settled = listener.dropped
    COLLECTOR.rows(narrow)
    assert (listener.dropped > settled) == bool(narrow.missed()), "an old loss is told again, or a new one is not"


@pytest.mark.slow
def test_listener_ends_with_its_host(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskstats, "QUIET", 0.1)
    other = Host()
    COLLECTOR.rows(other)
    listener = other.keep(Watch).listener
    assert listener is not None
    assert listener.listens()
    del other
    gc.collect()
    wait_until(lambda: not listener.listens(), what="the thread ends")


def lines(folder: Path) -> list[dict[str, Any]]:
    """Messages of the collector, as the agent wrote them."""
    files = sorted((folder / "tree").rglob("exited-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_agent_counts_on_after_a_reload(host: Host, start: Callable[..., Program], tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(f"sinks: [directory: {{path: {tmp_path}/tree}}]\ncollect: {{exited: {{every: 500ms}}}}\n")
    agent = start("agent", "--settings", str(file))

    def rows_of(storm: Storm) -> list[int]:
        last = lines(tmp_path)[-1]["rows"]
        return [
            n
            for name, n in zip(last.get("command", ()), last.get("processes", ()), strict=True)
            if name == storm.name
        ]

    for _ in range(2):
        before = len(lines(tmp_path))
        wait_until(lambda before=before: len(lines(tmp_path)) > before + 1, what="the agent listens")  # type: ignore[misc]
        storm = Storm(300)
        wait_until(lambda storm=storm: rows_of(storm) == [300], what="300 processes in a message")  # type: ignore[misc]
        storm.end()
        agent.process.send_signal(signal.SIGHUP)
    messages = lines(tmp_path)
    assert messages[0]["missing"] == {"processes": "absent"}
    assert {message["status"] for message in messages} == {"ok"}
    code, output = agent.stop()
    assert code == 0
    assert "Traceback" not in output


def without_the_right() -> None:
    """Root without CAP_NET_ADMIN; others have not got it anyway."""
    drop_from_bounding_set = 24
    ctypes.CDLL(None).prctl(drop_from_bounding_set, NET_ADMIN, 0, 0, 0)


def test_without_the_right_doctor_says_what_it_would_show(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jobsight", "doctor", "--json"],
        env={**os.environ, "JOBSIGHT_HOME": str(tmp_path)},
        preexec_fn=without_the_right,
        stdout=subprocess.PIPE,
        check=False,
    )
    (found,) = [item for item in json.loads(done.stdout) if item["collector"] == "exited"]
    assert (found["status"], found["rows"]) == ("ok", 0)
    (sentence,) = found["missing"]
    assert sentence.startswith("processes: forbidden")
    assert sentence.endswith("CAP_NET_ADMIN shows processes that live too short to be sampled")
