"""Processes left asleep: their rows are those that a cold start would give."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.collect.process import Options, Process, every_one
from jobsight.host import Host
from jobsight.roster import Roster
from jobsight.sleepers import REST, runs


class Calm(Host):
    """This machine, with processes that pass for old, and memory taken only when the test says so."""

    taken = 0

    def read_bytes(self, path: str) -> bytes:
        return b"pgsteal_kswapd %d\n" % self.taken if path == "proc/vmstat" else super().read_bytes(path)

    def uptime(self) -> float:
        return super().uptime() + 3600

    def asleep(self, pid: int) -> bool:
        return self.keep(Roster).seen[str(pid)].asleep >= 0

    def row(self, pid: int) -> Process:
        return next(row for row in every_one(self, Options()) if row.pid == pid)

    def watch(self, pid: int) -> Process:
        """Until it can be left asleep."""
        for _ in range(3 * REST):
            row = self.row(pid)
        return row


@pytest.fixture
def host() -> Iterator[Calm]:
    found = Calm()
    yield found
    found.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        time.sleep(0.1)
        yield process
        process.kill()


def test_a_process_that_does_not_run_is_left_asleep_and_its_row_stays(
    host: Calm, sleeper: subprocess.Popen[bytes]
) -> None:
    first = host.row(sleeper.pid)
    assert host.watch(sleeper.pid) == first
    assert host.asleep(sleeper.pid)
    assert Calm().row(sleeper.pid) == first


def test_a_sleeper_that_ran_is_seen_at_once(host: Calm, sleeper: subprocess.Popen[bytes]) -> None:
    host.watch(sleeper.pid)
    assert host.asleep(sleeper.pid)
    sleeper.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    assert host.row(sleeper.pid).state == "T"
    assert not host.asleep(sleeper.pid)


def test_a_sleeper_whose_parent_died_has_its_new_parent_at_once(host: Calm) -> None:
    script = "import os, subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            time.sleep(0.1)
            assert host.watch(child).parent == parent.pid
            assert host.asleep(child)
            parent.kill()
            parent.wait()
            assert host.row(child).parent == Calm().row(child).parent != parent.pid
        finally:
            os.kill(child, signal.SIGKILL)


def test_sleepers_are_woken_when_the_kernel_took_memory(host: Calm, sleeper: subprocess.Popen[bytes]) -> None:
    host.watch(sleeper.pid)
    host.taken += 1
    host.row(sleeper.pid)
    assert not host.asleep(sleeper.pid)
    for _ in range(REST - 1):
        host.row(sleeper.pid)
    assert not host.asleep(sleeper.pid)
    host.watch(sleeper.pid)
    assert host.asleep(sleeper.pid)


def test_a_process_of_several_threads_is_never_left_asleep(host: Calm) -> None:
    script = "import threading, sys; threading.Thread(target=sys.stdin.read).start(); print(flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.1)
        assert host.watch(process.pid).threads == 2
        assert not host.asleep(process.pid)
        process.kill()


def test_of_a_sleeper_one_file_is_held_and_of_a_gone_one_none(host: Calm, sleeper: subprocess.Popen[bytes]) -> None:
    host.watch(sleeper.pid)
    held = {os.readlink(f"/proc/self/fd/{fd}") for fd in host._held}
    assert [path for path in held if f"/{sleeper.pid}/" in path] == [f"/proc/{sleeper.pid}/schedstat"]
    for _ in range(70):  # over a whole turn, with its own look anew
        host.row(sleeper.pid)
    held = {os.readlink(f"/proc/self/fd/{fd}") for fd in host._held}
    assert [path for path in held if f"/{sleeper.pid}/" in path] == [f"/proc/{sleeper.pid}/schedstat"]
    sleeper.kill()
    sleeper.wait()
    every_one(host, Options())
    assert not [fd for fd in host._held if f"/{sleeper.pid}/" in os.readlink(f"/proc/self/fd/{fd}")]
    assert host.keep(Roster).held == len(host._held)


def test_schedstat_of_a_kernel_that_does_not_count_is_not_trusted() -> None:
    assert runs(b"1576725 9616 4\n")
    assert not runs(b"0 0 0\n")
    assert not runs(b"")


@pytest.mark.parametrize(
    ("last", "now", "kept"),
    [(100, 110, {"50", "100", "111", "120"}), (100, 5000, {"50", "100"}), (115, 60, {"100", "105", "111"})],
)
def test_skipped_numbers_that_may_be_anothers_by_now_are_doubted(
    tmp_path: Path, last: int, now: int, kept: set[str]
) -> None:
    (tmp_path / "proc").mkdir()
    host, roster = Host(str(tmp_path)), Roster()
    everybody = ["50", "100", "105", "111", "120"]
    (tmp_path / "proc/loadavg").write_text(f"0.0 0.0 0.0 1/80 {last}\n")
    roster.begin(host, everybody)
    roster.skipped.update(everybody)
    (tmp_path / "proc/loadavg").write_text(f"0.0 0.0 0.0 1/80 {now}\n")
    assert set(roster.begin(host, everybody)) == set(everybody) - kept
    assert roster.skipped == kept
