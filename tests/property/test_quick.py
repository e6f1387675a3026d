"""What was made quick says the same as what it stands for."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight.analyse.growth import Gain, Ident, Total, gains
from jobsight.analyse.keeper import entry
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.sample import WANTED
from jobsight.ingest.accept import Accepted, accept, recall
from jobsight.store.small import job_row
from tests.analyse.conftest import Nothing

# A busy machine is no reason to fail.
calm = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WIRE = Path(__file__).parent.parent / "wire"

amounts = st.sampled_from([0.0, 0.5, 1.0, 2.0, 100.0])
sizes = st.sampled_from([None, 0, 1, 4096, 10**12])
machines = st.dictionaries(
    st.builds(Ident, st.integers(1, 8), st.sampled_from([0.0, 1.0])),
    st.builds(Total, st.integers(0, 8), amounts, amounts, sizes, sizes, st.booleans()),
    max_size=8,
)


def plainly(before: dict[Ident, Total], after: dict[Ident, Total]) -> dict[Ident, Gain]:
    """The rules of `growth`, one process after the other, with no thought for time."""
    gone = sorted(before.keys() - after.keys())
    dead_of: dict[Ident, list[Total]] = {}
    by_pid = {ident.pid: ident for ident in before}
    for ident in gone:
        heir = by_pid.get(before[ident].parent)
        for _ in before:
            if heir is None or heir in after:
                break
            heir = by_pid.get(before[heir].parent)
        if heir is not None and heir in after:
            dead_of.setdefault(heir, []).append(before[ident])
    found = {}
    for ident, total in after.items():
        since = since_when(before.get(ident), total, [before[one] for one in gone], {one.pid for one in after})
        dead = dead_of.get(ident, [])
        owed = sum(one.cpu + one.children for one in dead)
        grown = total.children - since.children
        taken = dead if grown + 0.02 * (1 + len(dead)) >= owed else []
        found[ident] = Gain(
            max(0.0, total.cpu - since.cpu) + max(0.0, grown - owed),
            None if total.read is None else max(0, total.read - (since.read or 0) - sum(d.read or 0 for d in taken)),
            None
            if total.written is None
            else max(0, total.written - (since.written or 0) - sum(d.written or 0 for d in taken)),
        )
    return found


def since_when(earlier: Total | None, total: Total, gone: list[Total], living: set[int]) -> Total:
    if not total.merged:
        return earlier or Total(0, 0.0, 0.0, 0, 0)
    if earlier is None:
        return total
    joined = [earlier, *(one for one in gone if one.parent == total.parent or one.parent not in living)]
    sums = (sum(getattr(one, name) or 0 for one in joined) for name in ("cpu", "children", "read", "written"))
    return Total(earlier.parent, *sums)  # type: ignore[arg-type]


@calm
@given(machines, machines, st.lists(st.booleans(), min_size=8, max_size=8))
def test_gains_are_those_of_the_plain_rules(
    before: dict[Ident, Total], after: dict[Ident, Total], still: list[bool]
) -> None:
    # Most processes of a real machine are as they were. Init is apart: it also inherits in others' place.
    after |= {ident: before[ident] for ident, same in zip(sorted(before), still, strict=False) if same}
    expected = plainly(before, after)
    for ident, gain in gains(before, after).items():
        if ident.pid != 1:
            assert gain.cpu == pytest.approx(expected[ident].cpu), ident
            assert gain[1:] == expected[ident][1:], ident


def kept() -> list[bytes]:
    lines = [line for path in sorted(WIRE.glob("*/*.jsonl")) for line in path.read_bytes().splitlines()]
    assert len(lines) > 20
    return lines


def test_what_was_accepted_is_recalled_as_it_was() -> None:
    for line in kept():
        found = accept(line)
        assert isinstance(found, Accepted), line[:100]
        assert recall(found.line) == found
        part = recall(found.line, WANTED)
        assert isinstance(part, Accepted)
        assert part.columns == {name: found.columns[name] for name in part.columns}
        assert (part.count, part.identity, part.line) == (found.count, found.identity, found.line)


def test_what_cannot_be_recalled_is_refused_with_a_reason() -> None:
    for line in (b"{}", b"\xff", b'{"schema":1}', kept()[0].replace(b'"collector":"', b'"collector":"un')):
        assert recall(line) == accept(line)
        assert not isinstance(recall(line), Accepted)


def messages() -> list[bytes]:
    """Every column of what is counted, with values that would be missed."""
    stamp = {"schema": 1, "cluster": "fox", "node": "n1", "boot": "b1", "every": 30, "status": "ok", "seconds": 0.0}
    found = []
    for number in range(3):
        time = f"2026-11-15T09:0{number}:00+00:00"
        process = {
            "pid": [10, 11, 12], "started": [5.0, 6.0, 7.0], "parent": [1, 10, 10], "session": [10] * 3,
            "process_group": [10] * 3, "scheduler": ["slurm"] * 3, "job": ["7", "7", "8"],
            "owner": ["root", "ada", "bob"], "command": ["bash", "vasp", "gmx"],
            "state": ["S", "R", "Z" if number else "S"], "threads": [1, 4, 2],
            "cpu_user": [0.1, 10.0 * number, 1.0], "cpu_system": [0.0, 1.0 * number, 0.0],
            "cpu_children": [0.0, 2.0 * number, 0.0], "memory_anon": [1, 2, None], "memory_shared": [1, 2, 3],
            "memory_data": [1, 2, 3], "memory_virtual": [1, 2, 3], "read": [1, 100 * number, None],
            "written": [5, 50 * number, 7], "container": [None, "docker", None], "merged": [None, 3, None],
            "arguments": ["bash", "vasp -x", None],
        }  # fmt: skip
        group = {
            "scheduler": ["slurm", "slurm"], "job": ["7", "7"], "path": ["a", "a/b"], "step": [None, "0"],
            "task": [None, None], "cpu_time": [11.0 * number, 9.0], "cpu_user": [1.0, 1.0], "cpus": [8, 4],
            "memory_used": [9, 9], "memory_anon": [3, 3], "memory_file": [4, 4], "memory_peak": [99, 9],
            "memory_limit": [1000, 10], "oom_kills": [number, 0], "processes": [5, 5], "read": [7 * number, 0],
            "written": [9 * number, 0],
        }  # fmt: skip
        told = {
            "scheduler": ["slurm"], "job": ["7"], "source": ["prolog"], "number": ["4711"], "account": ["physics"],
            "name": ["melt"], "partition": ["long"], "nodes": ["n[1-2]"], "owner": ["ada"],
        }  # fmt: skip
        for collector, rows in (("allocation", told), ("process", process), ("cgroup", group)):
            head = {**stamp, "collector": collector, "time": time, "uptime": 1000.0 + 60 * number}
            found.append(json.dumps({**head, "rows": rows}).encode())
    return found


def counted(lines: list[bytes], **how: Any) -> tuple[list[Any], list[Any]]:
    ledger = Ledger(Nothing())
    for line in lines:
        found = recall(line, **how)
        assert isinstance(found, Accepted), found
        ledger.take(found)
    usage, jobs = ledger.emptied()
    return usage, [entry(job) for job in jobs]


def test_the_columns_that_are_wanted_are_all_that_is_looked_at() -> None:
    whole = counted(messages())
    assert len(whole[0]) == 8
    assert counted(messages(), wanted=WANTED) == whole


def test_an_entry_is_what_the_job_says_of_itself() -> None:
    for made in counted(messages())[1]:
        document = json.loads(made.document)
        again = job_row(document)
        assert json.loads(again[12]) == document
        assert [*again[:12], *again[13:]] == [*made[:12], *made[13:]]
