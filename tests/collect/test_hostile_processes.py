"""Processes that try to be misread: odd names, short lives, borrowed numbers, changes of place."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.collect.process import Process
from jobsight.host import Host
from jobsight.ingest.accept import Accepted, accept
from jobsight.recording import replay
from jobsight.roster import TURN
from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from tests.conftest import wait_until

PROCESS = catalogue.collector("process")
PR_SET_NAME = 15
NAMER = f"""
import ctypes, sys
name = bytes.fromhex(sys.argv[1])
assert ctypes.CDLL(None).prctl({PR_SET_NAME}, name) == 0
print("named", flush=True)
sys.stdin.read()
"""
STAT = "{pid} ({command}) S 1 {pid} {pid} 0 -1 4194560 1 0 0 0 {user} 0 0 0 20 0 1 0 {started} 4096 385 0 0\n"


def sample(host: Host) -> tuple[Message, dict[int, Process]]:
    message = replay(PROCESS, host)
    assert message.status == "ok", message.error
    rows = [dict(zip(message.rows, values, strict=True)) for values in zip(*message.rows.values(), strict=True)]
    by_pid = {row["pid"]: Process(**row) for row in rows}
    assert len(by_pid) == len(rows), "a process was listed twice"
    return message, by_pid


def sent(message: Message) -> dict[str, list[Any]]:
    """The rows as the server takes them."""
    line = encode(message)
    json.loads(line.decode("utf-8", "strict"))
    accepted = accept(line)
    assert isinstance(accepted, Accepted), accepted
    return accepted.columns


@contextmanager
def named(name: bytes) -> Iterator[int]:
    """A child whose command is what we say."""
    with subprocess.Popen(
        [sys.executable, "-c", NAMER, name.hex()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"named\n"
        yield child.pid
        child.kill()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (b"a\nb c\n1 (x) S", "a\nb c\n1 (x) S"),
        (b'say "it\'s" \\', 'say "it\'s" \\'),
        (b") R 1 2 3 (", ") R 1 2 3 ("),
        (b"x) R 1", "x) R 1"),
        (b"caf\xe9 \xff\xfe", "caf\\xe9 \\xff\\xfe"),
        ("火🔥".encode(), "火🔥"),
        # Cut by the kernel in the middle of a letter, at 15 bytes.
        ("aaaaaaaaaaaaaaé".encode(), "aaaaaaaaaaaaaa\\xc3"),
        (b"\t\x01\x1b[31m", "\t\x01\x1b[31m"),
        (b"", ""),
    ],
)
def test_odd_name_is_read_whole_and_comes_back_from_the_wire(name: bytes, command: str) -> None:
    with named(name) as pid:
        message, rows = sample(Host())
        row = rows[pid]
        assert row.command == command
        assert row.state in "RS"
        assert (row.pid, row.parent, row.threads) == (pid, os.getpid(), 1)
        assert row.session == os.getsid(0)
        columns = sent(message)
        assert columns["command"][columns["pid"].index(pid)] == command


def test_storm_of_short_lives_loses_nobody_else() -> None:
    storm = "for i in 1 2 3; do (while :; do /bin/true; done) & done; wait"
    with subprocess.Popen(["sh", "-c", storm], start_new_session=True) as child:
        host = Host()
        met: set[tuple[int, float]] = set()
        samples = 0
        try:
            # On a busy machine it takes a while until ten of them were caught alive.
            while samples < 30 or len(met) < 10:
                samples += 1
                message, rows = sample(host)
                assert {os.getpid(), child.pid} <= rows.keys()
                for row in rows.values():
                    assert row.state in "RSDZTtXxIWPK"
                    assert row.threads >= 0
                met |= {(row.pid, row.started) for row in rows.values() if row.session == child.pid}
                sent(message)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    # The killed take a moment to go; then nobody may be shown who is not there.
    wait_until(
        lambda: not met & {(row.pid, row.started) for row in sample(host)[1].values() if row.state not in "ZX"}
    )


class Holding(Host):
    """A machine that knows which files are held."""

    def __init__(self) -> None:
        self.held: dict[int, str] = {}
        super().__init__()

    def hold(self, path: str) -> int:
        held = super().hold(path)
        self.held[held] = path
        return held

    def let_go(self, held: int) -> None:
        del self.held[held]
        super().let_go(held)


def test_files_held_for_the_dead_are_let_go() -> None:
    host = Holding()
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(8)]
    files = {f"proc/{child.pid}/stat" for child in children}
    sample(host)
    assert files <= set(host.held.values())
    for child in children:
        child.kill()
        child.wait()
    sample(host)
    assert not files & set(host.held.values())


class Tree:
    """A machine of one process, to be changed under the collector's eyes."""

    def __init__(self, root: Path, *, uptime: float) -> None:
        self.root = root
        self.put("machine.json", json.dumps({"node": "node1", "uptime": uptime, "page": 4096}))
        self.put("etc/passwd", "root:x:0:0:::\nalice:x:1001:1001:::\nbob:x:1002:1002:::\n")
        self.put("proc/self/stat", STAT.format(pid=1, command="init", user=0, started=1))
        self.put("proc/77/statm", "100 50 20 1 0 1 0\n")
        self.put("proc/77/io", "read_bytes: 0\nwrite_bytes: 0\n")

    def put(self, path: str, text: str) -> None:
        """In place: who holds the file sees the new text, as on /proc."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def process(self, command: str, *, user: int, started: int, cgroup: str = "/") -> None:
        self.put("proc/77/stat", STAT.format(pid=77, command=command, user=user, started=started))
        self.put("proc/77/cgroup", f"0::{cgroup}\n")


class Procfs(Host):
    """A tree that behaves as /proc does: files held for a process that died cannot be read any more."""

    owner = 1001

    def __init__(self, root: str) -> None:
        self.alive: set[int] = set()
        super().__init__(root)

    def uid(self, path: str) -> int:  # noqa: ARG002
        return self.owner

    def hold(self, path: str) -> int:
        held = super().hold(path)
        self.alive.add(held)
        return held

    def peek(self, held: int, size: int = 1024) -> bytes:
        if held not in self.alive:
            raise ProcessLookupError
        return super().peek(held, size)


@pytest.mark.parametrize("held_dies", [True, False], ids=["held file died", "held file lives on"])
def test_number_that_lives_again_is_another_process(tmp_path: Path, held_dies: bool) -> None:
    tree = Tree(tmp_path, uptime=100_000.0)
    tree.process("first", user=500, started=1000, cgroup="/slurm/uid_1001/job_1")
    host = Procfs(str(tmp_path))
    sample(host)
    first = sample(host)[1][77]
    assert (first.started, first.owner, first.job, first.cpu_user) == (10.0, "alice", "1", 5.0)
    tree.process("second", user=1, started=2000, cgroup="/slurm/uid_1002/job_2")
    host.owner = 1002
    if held_dies:
        host.alive.clear()
    second = sample(host)[1][77]
    assert (second.started, second.owner, second.job, second.cpu_user) == (20.0, "bob", "2", 0.01)
    assert second.command == "second"


def test_young_process_that_moves_to_its_job_is_seen_there(tmp_path: Path) -> None:
    tree = Tree(tmp_path, uptime=100.0)
    host = Procfs(str(tmp_path))
    tree.process("slurmstepd", user=1, started=9990, cgroup="/system.slice/slurmd.service")
    assert sample(host)[1][77].scheduler == "systemd"
    tree.process("bash", user=2, started=9990, cgroup="/system.slice/slurmstepd.scope/job_8/step_0/user/task_0")
    moved = sample(host)[1][77]
    assert (moved.scheduler, moved.job) == ("slurm", "8")


def test_young_process_that_moves_in_its_sleep_is_seen_there(tmp_path: Path) -> None:
    tree = Tree(tmp_path, uptime=100.0)
    host = Procfs(str(tmp_path))
    tree.process("sleep", user=1, started=9990)
    assert sample(host)[1][77].scheduler == "session"
    tree.process("sleep", user=1, started=9990, cgroup="/slurm/uid_1001/job_8/step_0")
    warm, cold = sample(host)[1][77], sample(Procfs(str(tmp_path)))[1][77]
    assert warm == cold
    assert (warm.scheduler, warm.job) == ("slurm", "8")


def test_old_process_that_moves_or_changes_its_user_is_seen_when_its_turn_comes(tmp_path: Path) -> None:
    tree = Tree(tmp_path, uptime=100_000.0)
    host = Procfs(str(tmp_path))
    tree.process("idle", user=1, started=1000)
    sample(host)
    tree.process("idle", user=1, started=1000, cgroup="/docker/0123456789abcdef")
    host.owner = 1002
    rows = [sample(host)[1][77] for _ in range(TURN)]
    assert (rows[-1].owner, rows[-1].scheduler, rows[-1].job) == ("bob", "docker", "0123456789ab")


def test_torn_line_of_one_process_is_said_and_the_others_are_kept(tmp_path: Path) -> None:
    tree = Tree(tmp_path, uptime=100_000.0)
    tree.process("torn", user=1, started=1000)
    tree.put("proc/78/stat", "78 (torn) S 1 2")
    message, rows = sample(Procfs(str(tmp_path)))
    assert set(rows) == {77}
    assert message.missing["pid"] == "failed"


def test_directory_with_a_name_that_is_no_text_does_not_spoil_the_message(tmp_path: Path) -> None:
    scope = b"sys/fs/cgroup/user.slice/user-1001.slice/user@1001.service/app.slice/\xff\xfe.scope"
    os.makedirs(os.path.join(os.fsencode(tmp_path), scope))
    for folder in (tmp_path / "sys/fs/cgroup", Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), scope)))):
        (folder / "cgroup.controllers").write_text("cpu memory\n")
        (folder / "cpu.stat").write_text("usage_usec 1000000\nuser_usec 600000\nsystem_usec 400000\n")
    message = replay(catalogue.collector("cgroup"), Host(str(tmp_path)))
    assert message.status == "ok", message.error
    assert sent(message)["cpu_time"] == [1.0]
