"""A disk that is really full, the agent's and the server's: nothing is damaged, and all goes on when it is not."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.ingest.quarantine import Quarantine
from jobsight.schema.wire import compress
from tests.conftest import Program, answers, free_port, wait_until
from tests.store.contract import BOOT, process_line

pytestmark = pytest.mark.slow

Start = Callable[..., Program]
MEBIBYTE = 2**20


class Disk:
    """A small file system of its own, and a file that fills it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """To the last byte, as another program would."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (MEBIBYTE, 4096, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def empty(self) -> None:
        self._ballast.unlink()


@contextmanager
def mounted(path: Path, size: int) -> Iterator[Disk]:
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sentence = f"A FULL DISK IS NOT TESTED: MOUNTING A SMALL FILE SYSTEM NEEDS ROOT ({done.stderr.strip()})"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*.spool"))


def seen(port: int) -> float:
    """When the server last heard of this machine."""
    with urlopen(f"http://127.0.0.1:{port}/api/v1/nodes", timeout=10) as answer:
        return max((node["seen"] for node in json.load(answer)), default=0.0)


def test_an_agent_whose_spool_is_on_a_full_disk_goes_on_and_says_what_it_lost(start: Start, tmp_path: Path) -> None:
    port = free_port()
    with mounted(tmp_path / "disk", 2 * MEBIBYTE) as disk:
        spool = disk.path / "spool"
        settings = {
            "cluster": "fox",
            "sinks": [{"http": {"url": f"http://127.0.0.1:{port}/ingest", "window": 0}}],
            # More than there is: the disk is the bound.
            "spool": {"path": str(spool), "size": 64 * MEBIBYTE},
            "collect": {"agent": {"every": 0.5}},
        }
        (tmp_path / "agent.yaml").write_text(json.dumps(settings))
        agent = start("agent", "--settings", str(tmp_path / "agent.yaml"), "--every", "0.2")
        wait_until(lambda: size_of(spool) > 30_000, what="the spool fills: there is no server")
        disk.fill()
        full = size_of(spool)
        time.sleep(4)
        assert size_of(spool) <= full + 4096
        assert agent.process.poll() is None
        disk.empty()
        wait_until(lambda: size_of(spool) > full + 10_000, what="there is room, and it is used")
        server = start("serve", "--listen", f"127.0.0.1:{port}", "--store", str(tmp_path / "store"))
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"), 60, "the server answers")
        back = time.time()
        wait_until(lambda: seen(port) > back, 60, "the spool is sent")
        # Full again, but what is in the spool is acknowledged: its room is enough to go on with.
        disk.fill()
        again = time.time()
        wait_until(lambda: seen(port) > again + 4, 60, "it goes on while the disk is full")
        disk.empty()
        code, told = agent.stop()
        assert code == 0, told
        # Said once, and not for every message that it costs.
        assert told.count("No space left on device") == 1, told
        code, output = server.stop()
        assert code == 0, output
    store = open_store(str(tmp_path / "store"))
    store.digest()
    rows = store.query("SELECT time, messages, dropped, torn FROM agent ORDER BY time")
    at, made, dropped, torn = rows[-1]
    ((stored, kinds),) = store.query("SELECT count(*), count(DISTINCT collector) FROM run WHERE time <= ?", [at])
    store.close()
    assert dropped > 20
    assert not torn
    _, made_before, dropped_before, _ = [row for row in rows if row[0] < again][-1]
    assert dropped - dropped_before < (made - made_before) / 5
    # Those of the same instant may be made or not when the agent counts.
    assert abs(stored + dropped - made) <= kinds
    assert Quarantine(str(tmp_path / "store" / "quarantine")).held() == 0


class Sender(threading.Thread):
    """Posts numbered messages and remembers which were acknowledged; what was not is sent again, as agents do."""

    def __init__(self, url: str, node: str) -> None:
        super().__init__()
        self.url, self.node = url, node
        self.acknowledged: set[float] = set()
        self.statuses: set[int] = set()
        self.stopping = False
        self.number = 0

    def run(self) -> None:
        while not self.stopping:
            times = [BOOT + 100 + self.number + part / 10 for part in range(10)]
            body = b"".join(compress(process_line(at, node=self.node) + b"\n") for at in times)
            headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
            try:
                with urlopen(Request(f"{self.url}/ingest", body, headers), timeout=30) as answer:
                    assert json.load(answer)["accepted"] == 10
            except HTTPError as error:
                # One that does not say when to come again is worse than none.
                self.statuses.add(error.code if error.headers["Retry-After"] else 0)
                error.close()
                time.sleep(0.1)
            except (OSError, HTTPException):
                time.sleep(0.1)
            else:
                self.acknowledged |= set(times)
                self.number += 1
                time.sleep(0.01)


def shows(url: str) -> bool:
    """Pages and questions are answered, whatever the disk does."""
    return all(answers(f"{url}{path}") for path in ("/", "/jobs", "/api/v1/jobs", "/api/v1/nodes"))


def test_a_server_whose_disk_is_full_says_so_loses_nothing_and_goes_on_by_itself(
    start: Start, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with mounted(tmp_path / "disk", 64 * MEBIBYTE) as disk:

        def begin() -> Program:
            program = start("serve", "--listen", f"127.0.0.1:{port}", "--store", str(disk.path / "store"))
            wait_until(lambda: answers(f"{url}/health") or program.process.poll() is not None, 60, "it answers")
            assert program.process.poll() is None, program.process.communicate()[0]
            return program

        def goes_on(what: str) -> None:
            before = [sender.number for sender in senders]
            wait_until(
                lambda: all(s.number > b + 5 for s, b in zip(senders, before, strict=True)), 60, f"it goes on {what}"
            )

        program = begin()
        senders = [Sender(url, f"n{number}") for number in range(2)]
        for sender in senders:
            sender.start()
        try:
            for turn in range(3):
                goes_on(f"before turn {turn}")
                disk.fill()
                for sender in senders:
                    sender.statuses.clear()
                wait_until(lambda: all(503 in sender.statuses for sender in senders), 30, "it says that it is full")
                time.sleep(2)
                assert shows(url)
                assert program.process.poll() is None
                if turn == 1:
                    # Killed while the disk is full: nothing but room is needed to start again.
                    program.kill()
                    disk.empty()
                    program = begin()
                else:
                    disk.empty()
                goes_on(f"after turn {turn}")
                assert shows(url)
        finally:
            for sender in senders:
                sender.stopping = True
            for sender in senders:
                sender.join()
        assert {status for sender in senders for status in sender.statuses} <= {503}
        code, told = program.stop()
        assert code == 0, told
        assert "set aside" not in told
        store = open_store(str(disk.path / "store"))
        store.digest()
        for sender in senders:
            times = [row[0] for row in store.query("SELECT time FROM process WHERE node = ?", [sender.node])]
            assert len(times) == len(set(times)), "stored twice"
            assert sender.acknowledged <= set(times), "an acknowledged message is missing"
            ((total,),) = store.query("SELECT sum(cpu_time) FROM usage WHERE node = ?", [sender.node])
            assert total == pytest.approx(max(times) - BOOT - 50)
        store.close()
        assert Quarantine(str(disk.path / "store" / "quarantine")).held() == 0
