"""The TSV sink: known numbers, days, hostile names, full disks, and tidying that touches nothing but its own."""

import os
from pathlib import Path
from typing import Any

import pytest

from jobsight import settings
from jobsight.clock import SystemClock
from jobsight.collect.agent import Tally
from jobsight.schema.message import Message, Origin, Status
from jobsight.schema.units import Bytes, Seconds
from jobsight.ship import tsv
from jobsight.ship.sink import Place

# 2026-11-15T08:57:04+00:00
TIME = 1794733024.0
DAY = 86400.0
TODAY = "2026/11/15/n1.tsv"

COLUMNS = ("pid", "started", "owner", "scheduler", "job", "command", "cpu_user", "cpu_system", "memory_anon")


def row(pid: int, user: float, **changes: Any) -> tuple[Any, ...]:
    values = {
        "pid": pid,
        "started": 10.0,
        "owner": "ann",
        "scheduler": "slurm",
        "job": "7",
        "command": "solve",
        "cpu_user": user,
        "cpu_system": 0.0,
        "memory_anon": 1000,
        **changes,
    }
    return tuple(values[name] for name in COLUMNS)


def processes(*rows: tuple[Any, ...], uptime: float = 100.0, every: float | None = 30.0, day: int = 0) -> Message:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else {}
    return message("process", columns, uptime, every, day)


def message(
    collector: str, rows: dict[str, Any], uptime: float = 100.0, every: float | None = 30.0, day: int = 0
) -> Message:
    time = TIME + uptime - 100 + day * DAY
    return Message(Origin("fox", "n1", "b1"), collector, time, uptime, every, Status.OK, 0.1, None, {}, rows)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("n1", settings.Spool(str(tmp_path / "spool"), Bytes(1), Seconds(1)), SystemClock(), Tally())


@pytest.fixture
def sink(tmp_path: Path, place: Place) -> tsv.Tsv:
    return tsv.Tsv(tsv.Options(str(tmp_path / "tree")), place)


def cells(tmp_path: Path, file: str = TODAY) -> list[list[str]]:
    text = (tmp_path / "tree" / file).read_text()
    assert text.endswith("\n")
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


def test_processes_of_one_command_are_added_up_and_cpu_is_what_was_used_since_the_last_sample(
    sink: tsv.Tsv, tmp_path: Path, place: Place
) -> None:
    sink.send(processes(row(1, 50.0), row(2, 20.0), row(3, 5.0, command="sh", memory_anon=7)))
    sink.send(
        processes(
            row(1, 80.0),
            row(2, 30.0, cpu_system=5.0),
            row(3, 5.0, command="sh", memory_anon=9),
            row(4, 6.0, owner="bob", started=110.0),
            uptime=130.0,
        )
    )
    assert cells(tmp_path) == [
        ["time", "host", "user", "project", "command", "cpu_recent", "memory"],
        ["2026-11-15T08:57:04+00:00", "n1", "ann", "-", "sh", "-", "7"],
        ["2026-11-15T08:57:04+00:00", "n1", "ann", "-", "solve", "-", "2000"],
        ["2026-11-15T08:57:34+00:00", "n1", "ann", "-", "sh", "0.000", "9"],
        ["2026-11-15T08:57:34+00:00", "n1", "ann", "-", "solve", "1.500", "2000"],
        ["2026-11-15T08:57:34+00:00", "n1", "bob", "-", "solve", "0.200", "1000"],
    ]
    assert place.tally.sent == 2


def test_an_agent_that_runs_once_tells_the_average_over_each_life(sink: tsv.Tsv, tmp_path: Path) -> None:
    rows = (row(1, 45.0), row(2, 20.0, started=60.0), row(3, 1.0, started=100.0, owner="bob"))
    sink.send(processes(*rows, every=None))
    header, ann, bob = cells(tmp_path)
    assert header[5] == "cpu_lifetime"
    assert ann[5] == "1.000"  # 45 s in 90 s and 20 s in 40 s
    assert bob[5] == "-"  # CPU time and no age


def test_what_cannot_be_known_is_not_zero(sink: tsv.Tsv, tmp_path: Path) -> None:
    sink.send(processes(row(1, 50.0)))
    # The first was hidden until now and is old; its pid is another's second life; memory of one is not known.
    sink.send(
        processes(
            row(2, 5000.0, command="hidden"),
            row(1, 2.0, started=120.0, command="reborn"),
            row(3, 0.0, started=120.0, command="half", memory_anon=None),
            row(4, 0.0, started=120.0, command="half"),
            uptime=130.0,
        )
    )
    found = {line[4]: line[5:] for line in cells(tmp_path)[2:]}
    assert found == {"hidden": ["-", "1000"], "reborn": ["0.067", "1000"], "half": ["0.000", "-"]}


def test_the_project_is_the_account_of_the_job_if_one_is_known(sink: tsv.Tsv, tmp_path: Path) -> None:
    accounts = {"scheduler": ("slurm", "slurm"), "job": ("7", "8"), "account": ("astro", None)}
    sink.send(message("allocation", accounts))
    sink.send(message("memory", {"total": (1,)}))
    sink.send(processes(row(1, 1.0), row(2, 1.0, job="8"), row(3, 1.0, scheduler="session")))
    assert [line[3] for line in cells(tmp_path)] == ["project", "-", "astro"]


def test_runs_that_brought_nothing_leave_no_line(sink: tsv.Tsv, tmp_path: Path) -> None:
    sink.send(processes(row(1, 1.0), uptime=100.0))
    sink.send(message("process", {})._replace(status=Status.LATE))
    sink.send(message("allocation", {})._replace(status=Status.FAILED))
    sink.send(processes(row(1, 31.0), uptime=160.0))
    assert [line[5] for line in cells(tmp_path)[1:]] == ["-", "0.500"]


def test_a_machine_with_no_processes_and_no_jobs_is_fine(sink: tsv.Tsv, tmp_path: Path) -> None:
    sink.send(message("allocation", {}))
    sink.send(processes())
    sink.send(processes(row(1, 3.0, started=110.0), uptime=130.0))
    assert [line[5] for line in cells(tmp_path)] == ["cpu_recent", "0.100"]


HOSTILE = ["a\tb", "a\nb", "a\r\nb", "a\\tb", "\x1b[31m", "a\u2028b", "\udcff", "", "#x", "ø"]


def test_hostile_names_leave_every_line_with_its_seven_cells_and_stay_apart(sink: tsv.Tsv, tmp_path: Path) -> None:
    rows = (row(n, 1.0, command=name, owner=name) for n, name in enumerate(HOSTILE))
    sink.send(processes(*rows)._replace(origin=Origin("fox", "n\t1", "b1")))
    text = (tmp_path / "tree" / TODAY).read_text()
    assert len(text.splitlines()) == 1 + len(HOSTILE)
    found = [line.split("\t") for line in text.splitlines()]
    assert {len(line) for line in found} == {7}
    assert len({line[4] for line in found[1:]}) == len(HOSTILE)
    assert {line[1] for line in found[1:]} == {"n\\t1"}
    assert {"a\\tb", "a\\\\tb", "ø"} <= {line[4] for line in found}


@pytest.mark.parametrize("node", ["../../etc/passwd", "a/b", ".."])
def test_a_nodes_name_cannot_leave_the_folder(node: str, tmp_path: Path, place: Place) -> None:
    sink = tsv.Tsv(tsv.Options(str(tmp_path / "tree")), place._replace(node=node))
    sink.send(processes(row(1, 1.0)))
    (file,) = (one for one in tmp_path.rglob("*") if one.is_file())
    assert file.parent == tmp_path / "tree/2026/11/15"


def test_each_day_has_a_file_with_a_header_and_one_that_was_removed_begins_anew(
    sink: tsv.Tsv, tmp_path: Path
) -> None:
    sink.send(processes(row(1, 1.0)))
    sink.send(processes(row(1, 1.0), uptime=130.0, day=1))
    (tmp_path / "tree/2026/11/16/n1.tsv").unlink()
    (tmp_path / "tree/2026/11/16").rmdir()
    sink.send(processes(row(1, 1.0), uptime=160.0, day=1))
    for file in (TODAY, "2026/11/16/n1.tsv"):
        assert [line[0][:10] for line in cells(tmp_path, file)] == ["time", file[:10].replace("/", "-")]


def test_a_new_life_goes_on_in_the_same_file(tmp_path: Path, place: Place) -> None:
    for uptime in (100.0, 130.0):
        tsv.Tsv(tsv.Options(str(tmp_path / "tree")), place).send(processes(row(1, 1.0), uptime=uptime))
    assert [line[0][:4] for line in cells(tmp_path)] == ["time", "2026", "2026"]


def test_a_disk_that_fills_up_in_the_middle_leaves_whole_lines_and_is_told(
    sink: tsv.Tsv, tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(fd: int, piece: bytes) -> int:
        if len(piece) < 20:
            raise OSError(28, "No space left on device")
        return real(fd, piece[: len(piece) // 2])

    with monkeypatch.context() as patched:
        patched.setattr("jobsight.files.os.write", full)
        with pytest.raises(OSError, match="No space left"):
            sink.send(processes(row(1, 1.0)))
    assert (tmp_path / "tree" / TODAY).read_bytes() == b""
    assert place.tally.sent == 0
    sink.send(processes(row(1, 16.0), uptime=130.0))
    assert [line[5] for line in cells(tmp_path)] == ["cpu_recent", "0.500"]


def test_old_files_of_this_node_go_with_the_folders_they_leave_empty(tmp_path: Path, place: Place) -> None:
    tree, away = tmp_path / "tree", tmp_path / "away"
    kept = ["2026/11/14/n1.tsv", "2026/11/13/n2.tsv", "2026/11/13/notes.txt", "2025/01/x/n1.tsv", "n1.tsv"]
    gone = ["2026/11/13/n1.tsv", "2026/11/12/n1.tsv", "2025/12/31/n1.tsv"]
    for file in kept + gone:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text("x\n")
    (away / "01").mkdir(parents=True)
    (away / "01/n1.tsv").write_text("theirs\n")
    (tree / "2024").mkdir()
    (tree / "2024/01").symlink_to(away)
    (tree / "2026/11/11").mkdir()
    (tree / "2026/11/11/n1.tsv").symlink_to(away / "01/n1.tsv")
    sink = tsv.Tsv(tsv.Options(str(tree), keep=Seconds(DAY)), place)
    sink.send(processes(row(1, 1.0)))
    assert [file for file in gone if (tree / file).exists()] == []
    assert [file for file in kept if not (tree / file).exists()] == []
    assert not (tree / "2026/11/12").exists()
    assert not (tree / "2025/12").exists()
    assert (away / "01/n1.tsv").read_text() == "theirs\n"
    assert (tree / "2026/11/11/n1.tsv").is_symlink()
    assert (tree / TODAY).exists()


def test_without_keep_nothing_is_ever_removed(sink: tsv.Tsv, tmp_path: Path) -> None:
    old = tmp_path / "tree/1999/01/01/n1.tsv"
    old.parent.mkdir(parents=True)
    old.write_text("x\n")
    sink.send(processes(row(1, 1.0)))
    assert old.exists()


def test_tidying_that_fails_does_not_lose_the_sample(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tsv, "remove_old", forbidden)
    tsv.Tsv(tsv.Options(str(tmp_path / "tree"), keep=Seconds(DAY)), place).send(processes(row(1, 1.0)))
    assert len(cells(tmp_path)) == 2
    assert "old files stay" in capfd.readouterr().err
