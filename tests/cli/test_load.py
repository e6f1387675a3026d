"""`jobsight load`: trees into a store, directly and through its server; twice, killed, refused."""

import json
import signal
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from jobsight.analyse.keeper import open_store
from jobsight.cli.door import Handed
from jobsight.cli.main import main
from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.ingest import directory
from jobsight.schema.message import Message
from jobsight.schema.units import Bytes, Seconds
from jobsight.settings import Spool
from jobsight.ship import sonar
from jobsight.ship.directory import Directory
from jobsight.ship.sink import Place
from jobsight.store.protocol import JobQuery
from tests.compat.messages import MACHINES, NOON, processes, recorded
from tests.conftest import Program, wait_until
from tests.store.contract import BOOT, load_line, process_line

SUMS = {
    "run": "SELECT count(*), sum(time) FROM run",
    "process": "SELECT count(*), sum(pid), sum(cpu_user + cpu_system + cpu_children), sum(memory_anon) FROM process",
    "cpu": "SELECT count(*), sum(user_time), sum(idle_time) FROM cpu",
    "usage": "SELECT count(*), sum(cpu_time), sum(seconds) FROM usage",
}


def place(tmp_path: Path) -> Place:
    spool = Spool(str(tmp_path / "spool"), Bytes(10**6), Seconds(86400))
    return Place("n1", spool, SystemClock(), Tally())


def own_tree(tmp_path: Path, messages: Iterable[Message]) -> Path:
    sink = Directory(str(tmp_path / "own"), place(tmp_path))
    for message in messages:
        sink.send(message)
    return tmp_path / "own"


def sonar_tree(tmp_path: Path, messages: Iterable[Message]) -> Path:
    sink = sonar.open_sink(sonar.Options(path=str(tmp_path / "sonar")), place(tmp_path))
    for message in messages:
        sink.send(message)
    sink.close()
    return tmp_path / "sonar"


def real_messages(rounds: int = 4) -> list[Message]:
    return [message for number in range(rounds) for message in recorded(MACHINES[0], after=30.0 * number)]


def held(store: Path) -> dict[str, Any]:
    """What a store has, in sums."""
    with duckdb.connect(str(store / "hot.duckdb"), read_only=True) as connection:
        return {name: pytest.approx(connection.execute(sql).fetchone()) for name, sql in SUMS.items()}


def load(capsys: pytest.CaptureFixture[str], store: Path, *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["load", "--store", str(store), *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_tree_loaded_twice_is_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = real_messages()
    tree, store = own_tree(tmp_path, messages), tmp_path / "store"
    code, said, _ = load(capsys, store, tree)
    assert (code, said.partition(";")[0]) == (0, "6 files: 24 messages new, 0 known, 0 refused")
    once = held(store)
    assert once["run"].expected[0] == len(messages)
    count, _, used, _ = once["process"].expected
    rows = [message.rows for message in messages if message.collector == "process"]
    names = ("cpu_user", "cpu_system", "cpu_children")
    assert count == sum(len(columns["pid"]) for columns in rows)
    assert used == pytest.approx(sum(sum(columns[name]) for columns in rows for name in names))
    code, said, _ = load(capsys, store, tree)
    assert (code, said.partition(";")[0]) == (0, "0 files (6 more unchanged): 0 messages new, 0 known, 0 refused")
    # From another place, where nothing is remembered of its files.
    tree.rename(tmp_path / "moved")
    code, said, _ = load(capsys, store, tmp_path / "moved")
    assert (code, said.partition(";")[0]) == (0, "6 files: 0 messages new, 24 known, 0 refused")
    assert held(store) == {name: found.expected for name, found in once.items()}


def test_sonars_tree_from_another_place_is_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree, store = sonar_tree(tmp_path, real_messages()), tmp_path / "store"
    assert load(capsys, store, tree)[0] == 0
    once = held(store)
    assert once["run"].expected[0] == 4 * 4  # process, load, disk, hardware
    tree.rename(tmp_path / "moved")
    assert "0 messages new, 16 known" in load(capsys, store, tmp_path / "moved")[1]
    assert held(store) == {name: found.expected for name, found in once.items()}


def workload() -> list[Message]:
    """An hour of a node: a shell that starts one worker after the other, a Slurm job, one that was there before."""
    messages = []
    reaped = 0.0
    for step in range(13):
        after = 300.0 * step
        rows: list[dict[str, Any]] = [{"pid": 50, "process_group": 50, "job": "50", "cpu_user": 9000.4 + after / 3}]
        if step:
            shell = {"pid": 100, "started": 86410.0, "cpu_children": reaped}
            rows.append(shell)
            slurm = {"pid": 300, "started": 86420.0, "scheduler": "slurm", "job": "7", "process_group": 300}
            rows.append({**slurm, "cpu_user": 0.97 * (after - 20), "read": 10**6 * step, "written": 0})
            if step % 3:
                born = 300.0 * (step - step % 3) + 20
                rows.append({"pid": 200 + step // 3, "parent": 100, "started": 86400 + born,
                             "cpu_user": 0.49 * (after - born), "cpu_system": 0.31 * (after - born)})  # fmt: skip
            if step % 3 == 2:
                # Ends 100 s after this sample; the shell waits for it.
                reaped += 0.8 * (after + 100 - born)
        messages.append(processes(*rows, after=after, every=300.0))
    return messages


def test_jobs_of_sonars_tree_used_what_they_used_in_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores = {}
    for name, tree in (("own", own_tree(tmp_path, workload())), ("sonar", sonar_tree(tmp_path, workload()))):
        assert load(capsys, tmp_path / name / "store", tree)[0] == 0
        opened = open_store(str(tmp_path / name / "store"))
        stores[name] = {job["id"]: job for job in opened.jobs(JobQuery(), NOON + 4000)}
        opened.close()
    own, back = stores["own"], stores["sonar"]
    assert own.keys() == back.keys() == {"50", "100", "7"}

    def total(job: dict[str, Any], name: str) -> float:
        return float(sum(part[name] or 0 for part in job["parts"]))

    # Whole seconds, and one for each of four workers that ended.
    assert total(back["100"], "cpu_time") == pytest.approx(total(own["100"], "cpu_time"), abs=6)
    assert total(own["100"], "cpu_time") == pytest.approx(0.8 * 4 * 680, abs=1)
    assert total(back["7"], "cpu_time") == pytest.approx(total(own["7"], "cpu_time"), abs=1)
    assert total(back["7"], "read") == pytest.approx(12 * 10**6, abs=2048)
    # What was there before the first sample is counted from then on.
    assert total(back["50"], "cpu_time") == pytest.approx(1200, abs=1)
    assert total(back["50"], "seconds") == 3600
    # Its share of a core says when a process started.
    assert back["7"]["started"] == pytest.approx(own["7"]["started"], abs=2)
    for name in own:
        assert own[name]["owner"] == back[name]["owner"]


def test_what_is_refused_is_kept_with_path_and_reason_and_the_rest_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "load-n1.jsonl"
    file.write_bytes(load_line(BOOT) + b"\n" + load_line(BOOT + 10).replace(b"0.5", b'"x"') + b"\n{nonsense}\n")
    code, said, errors = load(capsys, tmp_path / "store", file)
    assert (code, said.partition(";")[0]) == (1, "1 file: 1 message new, 0 known, 2 refused")
    assert "$.rows.load1[0]" in errors
    (quarantine,) = (tmp_path / "store" / "quarantine").iterdir()
    kept = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [entry["path"] for entry in kept] == ["$.rows.load1[0]", "$"]
    assert all(str(file) in entry["reason"] for entry in kept)


def test_a_dry_run_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = [own_tree(tmp_path, real_messages(1)), sonar_tree(tmp_path, real_messages(1))]
    (tmp_path / "sonar" / "0+job-slurm.json").write_text('{"data": {"type": "jobs", "attributes": {}}}')
    code, said, _ = load(capsys, tmp_path / "store", "--dry-run", *trees)
    wanted = "9 files: 10 messages could be loaded, 0 refused, 1 job or cluster document left out"
    assert (code, said.partition(";")[0]) == (0, wanted)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["/nowhere/at/all"], 2, "/nowhere/at/all: no such file or directory"),
        (["EMPTY"], 1, "nothing to load in"),
    ],
)
def test_wrong_use_is_one_sentence(
    arguments: list[str], code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    given = [argument.replace("EMPTY", str(tmp_path / "empty")) for argument in arguments]
    found, _, errors = load(capsys, tmp_path / "store", *given)
    assert found == code
    assert sentence in errors
    assert errors.count("\n") == 1


def test_bookmarks_that_cannot_be_read_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "load.sqlite").write_text("rubbish" * 1000)
    code, _, errors = load(capsys, tmp_path / "store", own_tree(tmp_path, real_messages(1)))
    assert code == 1
    assert "store/load.sqlite, which remembers what was loaded: file is not a database" in errors
    assert errors.count("\n") == 1


def test_a_cluster_is_named_for_documents_that_name_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"time": "2026-11-15T08:00:00Z", "node": "n1", "jobs": []}
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"data": {"type": "sample", "attributes": about}}, indent=2))
    code, _, errors = load(capsys, tmp_path / "store", "--dry-run", file)
    assert code == 1
    assert "--cluster" in errors
    assert load(capsys, tmp_path / "store", "--cluster", "hen", file)[0] == 0


def test_a_server_that_owns_the_store_is_handed_the_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], serve: Callable[..., tuple[Program, str]]
) -> None:
    tree, store = own_tree(tmp_path, real_messages()), tmp_path / "store"
    program, _ = serve()
    for _ in range(2):
        code, said, _ = load(capsys, store, tree)
        assert code == 0
    assert said.startswith("0 files (6 more unchanged)")
    tree.rename(tmp_path / "moved")
    assert "24 messages handed over" in load(capsys, store, tmp_path / "moved")[1]
    program.stop()
    assert held(store)["run"].expected[0] == 24


def many(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "own" / "2026" / "11" / "15"
    folder.mkdir(parents=True)
    for node in ("n1", "n2"):
        lines = [process_line(BOOT + 100 + 10 * i, node, cpu_user=float(i)) for i in range(count)]
        (folder / f"process-{node}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return tmp_path / "own"


def finished_batches(store: Path) -> int:
    try:
        with sqlite3.connect(f"file:{store}/load.sqlite?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM place").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_it_goes_on_and_counts_once(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str], start: Callable[..., Program]
) -> None:
    tree, store = many(tmp_path, 3000), tmp_path / "store"
    program = start("load", "--store", str(store), str(tree))
    wait_until(lambda: finished_batches(store) or program.process.poll() is not None, what="a batch is loaded")
    program.process.send_signal(number)
    output, _ = program.process.communicate(timeout=30)
    # Quick machines may have finished; then this run shows nothing, and does not fail for it.
    if program.process.returncode and number == signal.SIGINT:
        assert program.process.returncode == 130
        assert "run again to go on" in output
    assert load(capsys, store, tree)[0] == 0
    opened = open_store(str(store))
    assert opened.query("SELECT count(*), count(DISTINCT (node, time)), sum(cpu_user) FROM process") == [
        (6000, 6000, 2 * sum(range(3000)))
    ]
    jobs = opened.jobs(JobQuery(), BOOT + 100_000)
    opened.close()
    assert [(len(job["parts"]), job["parts"][0]["cpu_time"]) for job in jobs] == [(1, 2999.0)] * 2


def test_each_batch_is_remembered_after_it_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails in the middle: what was not stored is read again."""
    monkeypatch.setattr(directory, "MESSAGES", 10)
    tree, store = many(tmp_path, 25), tmp_path / "store"
    calls = []

    def failing(self: Any, lines: list[bytes]) -> Handed:
        calls.append(len(lines))
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        self._store.append(lines).result()
        return Handed(self._store.digest())

    with monkeypatch.context() as patch:
        patch.setattr("jobsight.cli.door.Direct.hand_in", failing)
        code, _, errors = load(capsys, store, tree)
    assert code == 1
    assert "No space left" in errors
    assert "30 messages new, 0 known" in load(capsys, store, tree)[1]
    assert held(store)["run"].expected[0] == 50
