"""The account of processes that ended: its bounds, its forgetting, and records that cannot be used."""

import json
import struct
from pathlib import Path

import pytest

from jobsight import catalogue
from jobsight.collect import exited
from jobsight.collect.exited import Account, Exited
from jobsight.host import Host
from jobsight.recording import replay

MACHINE = Path(__file__).parent / "exited/debian12-taskstats16/root"
LINES = (MACHINE / "exits.hex").read_text().split()
COLLECTOR = catalogue.collector("exited")


class Later(Host):
    """The recorded machine at another time."""

    later = 0.0

    def uptime(self) -> float:
        return super().uptime() + self.later


def counted(account: Account, host: Host) -> list[Exited]:
    account.take(host, [bytes.fromhex(line) for line in LINES], gap=False)
    account.take(host, [], gap=False)
    return account.rows(host)


def labels(row: Exited) -> tuple[str, ...]:
    return row.scheduler, row.job, row.owner, row.command


def with_exits(tmp_path: Path, *lines: str) -> Host:
    (tmp_path / "exits.hex").write_text("".join(f"{line}\n" for line in lines))
    return Host(str(tmp_path))


def test_counters_only_grow() -> None:
    account, host = Account(), Host(str(MACHINE))
    once = {labels(row): row for row in counted(account, host)}
    twice = {labels(row): row for row in counted(account, host)}
    assert once.keys() == twice.keys()
    for key, row in once.items():
        assert twice[key].processes == 2 * row.processes
        assert twice[key].cpu_user >= row.cpu_user
        assert twice[key].cpu_system >= row.cpu_system
        assert twice[key].cpu_user + twice[key].cpu_system == pytest.approx(2 * (row.cpu_user + row.cpu_system))
        assert twice[key].written == 2 * (row.written or 0)
        assert twice[key].memory_peak == row.memory_peak


def test_commands_too_many_are_counted_together_and_older_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    account, host = Account(), Host(str(MACHINE))
    everyone = sum(row.processes for row in counted(Account(), host))
    monkeypatch.setattr(exited, "ROWS", 4)
    rows = counted(account, host)
    # The job's own, then one row for the rest of each job and user; at twice the bound one for everybody.
    assert [row.command for row in rows[:4]] == ["compile", "sh", "python3", "compile"]
    assert {row.command for row in rows[4:]} == {"…"}
    assert sum(row.processes for row in rows) == everyone
    assert rows[0].processes == 4
    again = counted(account, host)
    assert list(map(labels, again)) == list(map(labels, rows))
    assert [row.processes for row in again] == [2 * row.processes for row in rows]


def test_number_of_rows_is_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exited, "ROWS", 1)
    rows = counted(Account(), Host(str(MACHINE)))
    assert [(row.scheduler, row.command) for row in rows] == [("slurm", "compile"), ("slurm", "…"), ("unknown", "…")]
    assert sum(row.processes for row in rows) == 13


def test_row_that_held_still_for_an_hour_is_told_once_more_and_dropped() -> None:
    account, host = Account(), Later(str(MACHINE))
    before = counted(account, host)
    host.later = exited.IDLE - 1
    assert account.rows(host) == before
    host.later = exited.IDLE + 1
    assert account.rows(host) == before
    assert account.rows(host) == []


def test_io_is_missing_where_the_kernel_does_not_count_it(tmp_path: Path) -> None:
    message = replay(COLLECTOR, with_exits(tmp_path, *LINES))
    assert set(message.rows["read"]) == set(message.rows["written"]) == {None}


def test_tree_without_recorded_exits_is_not_listened_to(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "possible").write_text("0-1\n")
    message = replay(COLLECTOR, Host(str(tmp_path)))
    assert (message.status, message.rows, message.missing) == ("ok", {}, {"processes": "absent"})


def test_kernel_that_does_not_tell_threads_from_processes_counts_as_absent(tmp_path: Path) -> None:
    old = bytearray(bytes.fromhex(LINES[0]))
    struct.pack_into("=H", old, 36, 10)
    message = replay(COLLECTOR, with_exits(tmp_path, LINES[1], old.hex()))
    assert (message.status, message.rows, message.missing) == ("ok", {}, {"processes": "absent"})


def test_one_damaged_record_costs_no_other_and_is_told(tmp_path: Path) -> None:
    message = replay(COLLECTOR, with_exits(tmp_path, LINES[0], LINES[1][:80], LINES[1]))
    assert (message.rows["processes"], message.missing) == ((2,), {"processes": "failed"})


def test_text_that_is_no_record_is_a_parse_error(tmp_path: Path) -> None:
    message = replay(COLLECTOR, with_exits(tmp_path, "xyz"))
    assert message.error == "ParseError: exits.hex: expected lines of hexadecimal digits, got ['xyz']"


def test_the_kernels_own_threads_are_not_counted(tmp_path: Path) -> None:
    worker = bytearray(bytes.fromhex(LINES[0]))
    struct.pack_into("=I", worker, 36 + 132, 2)
    assert replay(COLLECTOR, with_exits(tmp_path, worker.hex())).rows == {}


def test_expected_rows_hold_every_recorded_process_once() -> None:
    expected = json.loads((MACHINE.parent / "expected.json").read_text())["rows"]
    # 16 records, of which four are the threads of one process.
    assert (len(LINES), sum(expected["processes"])) == (16, 13)
