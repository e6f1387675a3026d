from typing import Any

import pytest

from jobsight.formats import sacct, slurmtext
from jobsight.formats.sacct import Identity
from tests.formats.test_slurmtext import written

USUAL = dict.fromkeys(sacct.COLUMNS, "") | {
    "JobIDRaw": "7", "State": "COMPLETED", "JobID": "7", "User": "ann", "Submit": "1794725000", "Start": "1794725010",
    "End": "1794725070", "ElapsedRaw": "60", "ExitCode": "0:0", "TotalCPU": "00:58.250", "AllocTRES": "cpu=1,node=1",
}  # fmt: skip


def read(*jobs: dict[str, str]) -> tuple[list[dict[str, Any]], set[str]]:
    records = [tuple((USUAL | job)[name] for name in sacct.COLUMNS) for job in jobs]
    rows: list[dict[str, Any]] = []
    bad: set[str] = set()
    for block in sacct.jobs(written(sacct.COLUMNS, *records)):
        bad |= block.bad
        values = zip(*block.columns.values(), strict=True)
        rows += [dict(zip(block.columns, row, strict=True)) for row in values]
    return rows, bad


def test_job_has_its_times_and_its_cpu_time() -> None:
    (row,), bad = read({})
    assert bad == set()
    assert (row["job"], row["step"], row["state"], row["owner"]) == ("7", None, "COMPLETED", "ann")
    assert (row["submit"], row["start"], row["ended"]) == (1794725000.0, 1794725010.0, 1794725070.0)
    assert (row["elapsed"], row["cpu_time"], row["cpus"]) == (60.0, 58.25, 1)


@pytest.mark.parametrize(
    "state",
    ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REQUEUED", "SUSPENDED", "RUNNING",
     "PENDING", "REVOKED", "TIMEOUT", "FAILED", "NEVER_SEEN"],
)  # fmt: skip
def test_every_state_is_kept(state: str) -> None:
    rows, bad = read({"State": state})
    assert [row["state"] for row in rows] == [state]
    assert bad == set()


def test_what_is_said_before_the_end_is_left_out() -> None:
    (row,), _ = read({"State": "RUNNING", "End": "Unknown", "TotalCPU": "00:00:00", "ExitCode": "0:0", "MaxRSS": "5"})
    assert [row[name] for name in ("ended", "cpu_time", "exit_code", "exit_signal", "memory_peak")] == [None] * 5
    assert row["elapsed"] == 60.0


def test_memory_that_was_never_looked_at_is_missing() -> None:
    (row,), bad = read({"MaxRSS": "0", "AveRSS": "0"})
    assert (row["memory_peak"], row["memory_mean"], bad) == (None, None, set())


def test_step_has_its_jobs_owner_and_submission() -> None:
    rows, _ = read(
        {"Account": "physics", "Partition": "normal"},
        {"JobIDRaw": "7.batch", "JobID": "7.batch", "User": "", "Submit": "1794725010"},
        {"JobIDRaw": "7.0", "JobID": "7.0", "User": "", "Submit": "1794725011"},
        {"JobIDRaw": "9.0", "JobID": "9.0", "User": "", "Submit": "1794725012"},
    )
    assert [row["step"] for row in rows] == [None, "batch", "0", "0"]
    assert [row["owner"] for row in rows] == ["ann", "ann", "ann", None]
    assert [row["submit"] for row in rows] == [1794725000.0] * 3 + [None]
    assert [row["partition"] for row in rows] == ["normal"] * 3 + [None]


def test_steps_in_the_next_block_have_their_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurmtext, "PIECE", 1200)
    rows, _ = read({}, *({"JobIDRaw": f"7.{step}", "User": ""} for step in range(40)))
    assert [row["owner"] for row in rows] == ["ann"] * 41


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("7", Identity()),
        ("7.batch", Identity()),
        ("9_4", Identity(array="9", task=4)),
        ("9_0.extern", Identity(array="9", task=0)),
        ("9_[5-20%2]", Identity(array="9", waiting="[5-20%2]")),
        ("2+1.0", Identity(het="2", offset=1)),
    ],
)
def test_identity_tells_arrays_and_parts(text: str, identity: Identity) -> None:
    assert sacct.identity(text) == identity


@pytest.mark.parametrize(
    ("column", "text", "field"),
    [
        ("Start", "2026-10-25T02:30:00", "start"),
        ("TotalCPU", "long", "cpu_time"),
        ("AllocTRES", "nonsense", "allocated"),
        ("MaxRSS", "5X", "memory_peak"),
        ("ExitCode", "bad", "exit_code"),
        ("Priority", "-1", "priority"),
    ],
)
def test_value_that_does_not_read_costs_itself_and_is_named(column: str, text: str, field: str) -> None:
    rows, bad = read({}, {column: text, "JobIDRaw": "8"}, {"JobIDRaw": "9"})
    assert [row["job"] for row in rows] == ["7", "8", "9"]
    assert bad == {field}
    assert rows[1][{"allocated": "cpus"}.get(field, field)] is None
    assert rows[2]["cpu_time"] == 58.25


def test_row_without_a_state_costs_itself_and_is_reported() -> None:
    rows, bad = read({}, {"State": "", "JobIDRaw": "8"}, {"JobIDRaw": "9"})
    assert [row["job"] for row in rows] == ["7", "9"]
    assert bad == {"job"}


def test_job_called_unknown_is_called_so() -> None:
    (row,), _ = read({"JobName": "Unknown", "User": "None"})
    assert (row["name"], row["owner"]) == ("Unknown", "None")


@pytest.mark.parametrize(
    ("text", "limit"),
    [("5", (300.0, False)), ("UNLIMITED", (None, True)), ("Partition_Limit", (None, None)), ("", (None, None))],
)
def test_time_limit_is_a_number_or_none_at_all(text: str, limit: tuple[float | None, bool | None]) -> None:
    (row,), _ = read({"TimelimitRaw": text})
    assert (row["time_limit"], row["unlimited"]) == limit


def test_memory_asked_for_by_core_is_no_total() -> None:
    rows, bad = read({"ReqMem": "600M"}, {"ReqMem": "300Mc"}, {"ReqMem": "300Mn"})
    assert [row["requested_memory"] for row in rows] == [600 * 2**20, None, None]
    assert bad == set()


def test_every_column_that_is_asked_for_is_read() -> None:
    read_from = {source for source, _ in sacct.SOURCES.values()} | {"JobIDRaw"}
    assert read_from == {*sacct.COLUMNS, *sacct.NEWER}
    assert set(sacct.READERS) == read_from - {"JobIDRaw"}
