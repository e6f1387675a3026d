"""What the settings of the process collector leave out and add."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobsight import catalogue
from jobsight.collect.process import Options, Process
from jobsight.host import Host
from jobsight.settings import SettingsError, from_values

STAT = "{pid} ({command}) S {parent} {pid} {pid} 0 -1 4194560 1 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 4096 1 0 0\n"
ROOT, SYSTEM, ALICE, BOB = 0, 998, 1001, 1002


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """pid: uid, command, CPU ticks, parent."""
    people = {1: (ROOT, "init", 500, 0), 20: (SYSTEM, "chronyd", 9, 1), 30: (ALICE, "bash", 3, 1)}
    people |= {31: (ALICE, "worker", 100, 30), 32: (ALICE, "worker", 200, 30), 40: (BOB, "worker", 50, 1)}
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:\nchrony:x:998:\nalice:x:1001:\nbob:x:1002:\n")
    (tmp_path / "machine.json").write_text(json.dumps({"node": "n1", "uptime": 100_000.0, "page": 4096}))
    (tmp_path / "owners.json").write_text(json.dumps({f"proc/{pid}": who[0] for pid, who in people.items()}))
    for pid, (uid, command, ticks, parent) in people.items():
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(STAT.format(pid=pid, command=command, parent=parent, ticks=ticks, start=pid))
        (folder / "statm").write_text("100 50 20 1 0 1 0\n")
        (folder / "cgroup").write_text("0::/slurm/uid_1001/job_8/step_0\n" if uid == ALICE else "0::/\n")
        (folder / "uid_map").write_text("         0          0 4294967295\n")
        (folder / "cmdline").write_bytes(f"/usr/bin/{command}\0--key=\xff\0".encode("latin-1"))
    (tmp_path / "proc/self").symlink_to("1")
    return tmp_path


def rows(machine: Path, **options: Any) -> dict[int, Process]:
    found = catalogue.collector("process").rows(Host(str(machine)), Options(**options))
    return {row.pid: row for row in found}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {1, 20, 30, 31, 32, 40}),
        ({"exclude_users": ("root", "bob")}, {20, 30, 31, 32}),
        ({"exclude_uids": ("0-999",)}, {30, 31, 32, 40}),
        ({"exclude_uids": ("0", "1002-4294967294")}, {20, 30, 31, 32}),
        ({"exclude_commands": ("worker",)}, {1, 20, 30}),
        ({"minimum_cpu": 1.0}, {1, 31, 32}),
        ({"exclude_uids": ("0-999",), "minimum_cpu": 2.0}, {32}),
    ],
)
def test_filters_leave_out_what_they_name(machine: Path, options: dict[str, Any], left: set[int]) -> None:
    assert rows(machine, **options).keys() == left


def test_excluded_process_stays_out_and_the_others_stay_in(machine: Path) -> None:
    host, options = Host(str(machine)), Options(exclude_uids=("0-999",))
    samples = [{row.pid for row in catalogue.collector("process").rows(host, options)} for _ in range(70)]
    assert samples == [{30, 31, 32, 40}] * 70


def test_user_of_an_excluded_number_is_never_looked_up(machine: Path) -> None:
    class Counting(Host):
        asked: list[int]

        def user(self, uid: int) -> str:
            self.asked.append(uid)
            return super().user(uid)

    host = Counting(str(machine))
    host.asked = []
    catalogue.collector("process").rows(host, Options(exclude_uids=("0-999",)))
    assert set(host.asked) == {ALICE, BOB}


def test_rollup_adds_up_alike_processes_of_a_job(machine: Path) -> None:
    found = rows(machine, rollup=True)
    assert found.keys() == {1, 20, 30, 31, 40}
    assert (found[31].merged, found[31].cpu_user) == (1, 3.0)
    assert found[40].merged is None


def test_arguments_are_kept_only_where_asked_for(machine: Path) -> None:
    assert {row.arguments for row in rows(machine).values()} == {None}
    assert rows(machine, arguments=True)[31].arguments == "/usr/bin/worker --key=\\xff"


def test_endless_command_line_is_cut(machine: Path) -> None:
    (machine / "proc/40/cmdline").write_bytes(b"x\0" * 100_000)
    found = rows(machine, arguments=True)[40].arguments
    assert found is not None
    assert 500 < len(found) <= 1024


def test_process_with_users_of_its_own_is_contained(machine: Path) -> None:
    for pid in (32, 40):
        # Of those that hardly ran nobody asks.
        (machine / f"proc/{pid}/uid_map").write_text("         0       1002          1\n")
    (machine / "proc/20/cgroup").write_text(f"0::/docker/{'ab' * 32}\n")
    found = rows(machine)
    assert {pid: row.container for pid, row in found.items() if row.container} == {32: "namespace", 20: "docker"}


@pytest.mark.parametrize("text", ["root", "5-1", "0-", "-3", "1-2-3"])
def test_range_that_is_none_is_said_when_the_settings_are_read(text: str) -> None:
    with pytest.raises(SettingsError, match=r"collect\.process: exclude_uids: expected a range such as 0-999"):
        from_values({"collect": {"process": {"exclude_uids": [text]}}})
