"""Held files: as many as there are processes to look at, never those of the dead, never more than allowed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jobsight import catalogue, roster
from jobsight.host import Host

COLLECTOR = catalogue.collector("process")


def held_for(pids: set[int]) -> set[int]:
    """Those of the pids one of whose files this process has open."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            words = os.readlink(f"/proc/self/fd/{descriptor}").split("/")
        except FileNotFoundError:
            continue  # the one that listed the directory
        if words[:2] == ["", "proc"] and words[2].isdecimal():
            found.add(int(words[2]))
    return found & pids


@contextmanager
def sleepers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    children = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) for _ in range(count)
    ]
    try:
        yield children
    finally:
        end(children)


def end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdin:
            child.stdin.close()


def sampled(host: Host, pids: set[int]) -> set[int]:
    return {row.pid for row in COLLECTOR.rows(host)} & pids


def test_files_of_those_who_are_gone_are_let_go() -> None:
    host = Host()
    with sleepers(20) as children:
        pids = {child.pid for child in children}
        for _ in range(3):
            assert sampled(host, pids) == pids
        assert held_for(pids) == pids
        dead = {child.pid for child in children[:10]}
        end(children[:10])
        assert sampled(host, pids) == pids - dead
        assert held_for(pids) == pids - dead
    host.close()
    assert not held_for(pids)


def test_generations_of_processes_leave_no_file_open() -> None:
    host = Host()
    known = host.keep(roster.Roster)
    met: set[int] = set()
    for _ in range(5):
        with sleepers(10) as children:
            pids = {child.pid for child in children}
            met |= pids
            assert sampled(host, pids) == pids
    COLLECTOR.rows(host)
    assert not held_for(met)
    files = (held for seen in known.seen.values() for held in (seen.held, seen.held_io, seen.held_statm))
    assert known.held == sum(held >= 0 for held in files)
    host.close()


def test_who_works_is_kept_open_and_let_go_when_gone() -> None:
    host = Host()
    spin = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    with subprocess.Popen(spin) as child:
        # More than a tick of CPU time between samples.
        for _ in range(3):
            time.sleep(0.1)
            (row,) = [row for row in COLLECTOR.rows(host) if row.pid == child.pid]
        assert row.read is not None
        seen = host.keep(roster.Roster).seen[str(child.pid)]
        assert min(seen.held, seen.held_io) >= 0
        child.kill()
    assert not sampled(host, {child.pid})
    assert not held_for({child.pid})
    host.close()


def test_without_room_to_hold_files_the_rows_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    free, bound = Host(), Host()
    monkeypatch.setattr(bound, "room", lambda: 3)
    with sleepers(10) as children:
        pids = {child.pid for child in children}
        for _ in range(3):
            assert sampled(bound, pids) == pids == sampled(free, pids)
        assert bound.keep(roster.Roster).held == 3
    free.close()
    bound.close()


def test_closed_host_does_not_close_the_files_of_others() -> None:
    host = Host()
    held = host.hold("proc/self/stat")
    with open("/proc/self/statm", "rb") as other:
        host.close()
        # The number is free again, and another file gets it.
        os.dup2(other.fileno(), held)
    try:
        host.let_go(held)
        assert os.pread(held, 10, 0)
    finally:
        os.close(held)
