"""`sacct --json` set against the table that the same Slurm printed of the same jobs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.collector import ParseError
from jobsight.formats import sacct, sacctjson

HERE = Path(__file__).parent / "sacctjson"
TEXT = (HERE / "22.05.json").read_text()
# All but what the JSON has no word of (users' numbers, entries of the database) or tells by its own rules.
SAME = {
    "state", "owner", "group_name", "account", "partition", "qos", "name", "work_dir", "nodes", "elapsed",
    "suspended", "array_job", "array_index", "het_job", "time_limit", "requested_memory", "requested_gpus", "submit",
    "start", "ended", "cpus", "memory", "gpus", "tasks", "memory_peak", "memory_mean", "read", "written",
    "priority", "node_count",
}  # fmt: skip


def read(found: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    rows = {}
    for block in found:
        for place in range(block.size):
            row = {name: values[place] for name, values in block.columns.items()}
            rows[row["job"], row["step"]] = row
    return rows


def table() -> dict[tuple[str, str | None], dict[str, Any]]:
    """Without two jobs whose names hold its mark and newlines; times as seconds since 1970."""
    return read(sacct.jobs((HERE / "22.05.psv").read_text()))


def told() -> dict[tuple[str, str | None], dict[str, Any]]:
    found = read(sacctjson.jobs(TEXT))
    return {key: found[key] for key in table()}


def test_both_tell_of_the_same_jobs_and_steps() -> None:
    found, known = read(sacctjson.jobs(TEXT)), {job for job, _ in table()}
    assert len(known) > 10
    assert {key for key in found if key[0] in known} == table().keys()


@pytest.mark.parametrize("name", sorted(SAME))
def test_both_say_the_same(name: str) -> None:
    expected = {key: row.get(name) for key, row in table().items()}
    assert {key: row.get(name) for key, row in told().items()} == expected


@pytest.mark.parametrize("name", ["eligible", "requested_cpus"])
def test_of_jobs_both_say_the_same(name: str) -> None:
    """Of steps the JSON does not tell it."""
    expected = {key: row[name] for key, row in table().items() if key[1] is None}
    assert {key: row[name] for key, row in told().items() if key[1] is None} == expected


def test_cpu_time_is_the_same_to_a_millisecond_and_a_jobs_is_that_of_its_steps() -> None:
    found, expected = told(), table()
    assert any(row["cpu_time"] for row in expected.values())
    for key, row in expected.items():
        for name in ("cpu_time", "cpu_user", "cpu_system"):
            assert found[key][name] == pytest.approx(row[name], abs=0.002 if key[1] else 0.01), (key, name)


def test_an_exit_code_that_22_05_forgot_is_missing_and_the_others_are_right() -> None:
    found, expected = told(), table()
    forgotten = {key for key, row in found.items() if row["exit_code"] is None}
    assert forgotten == {key for key, row in expected.items() if row["state"] == "FAILED"}
    for key in found.keys() - forgotten:
        mine, theirs = found[key], expected[key]
        assert (mine["exit_code"], mine["exit_signal"]) == (theirs["exit_code"], theirs["exit_signal"]), key


def test_an_exit_code_that_was_never_told_is_not_nought() -> None:
    """As of a step whose end Slurm wrote down and whose exit it did not hear of: the table has an empty field."""
    document = json.loads(TEXT)
    job = document["jobs"][0]
    job["exit_code"] = {"status": "PENDING", "return_code": None}
    row = read(sacctjson.jobs(json.dumps(document)))[str(job["job_id"]), None]
    assert (row["exit_code"], row["exit_signal"]) == (None, None)


def test_gpus_are_counted_by_type() -> None:
    document = json.loads(TEXT)
    job = document["jobs"][0]
    job["tres"]["allocated"] += [
        {"type": "gres", "name": "gpu", "id": 1001, "count": 3},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 3},
    ]
    row = read(sacctjson.jobs(json.dumps(document)))[str(job["job_id"]), None]
    assert (row["gpus"], row["gpu_types"]) == (3, "a100=3")


def newer(value: Any, name: str = "") -> Any:
    """The same as releases from 23.02 on write it."""
    if name in ("priority", "limit", "task_id", "return_code", "signal_id", "job_offset"):
        return {"set": value is not None, "infinite": False, "number": value or 0}
    if name == "current" or (name == "state" and isinstance(value, str)):
        return [value]
    if isinstance(value, dict):
        return {("id" if key == "signal_id" else key): newer(item, key) for key, item in value.items()}
    return [newer(item) for item in value] if isinstance(value, list) else value


def test_the_newer_shape_says_the_same() -> None:
    text = json.dumps(newer(json.loads(TEXT)))
    assert '"number"' in text
    assert read(sacctjson.jobs(text)) == read(sacctjson.jobs(TEXT))


def test_a_job_that_does_not_read_costs_itself_alone() -> None:
    document = json.loads(TEXT)
    document["jobs"][3]["state"] = {"current": "??"}
    (block,) = sacctjson.jobs(json.dumps(document))
    assert block.bad == {"job"}
    assert len({*block.columns["job"]}) == len(document["jobs"]) - 1


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": 5}', "[]", "sacct: error: no", "{" * 100_000])
def test_what_is_no_answer_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ParseError, match="expected JSON with jobs"):
        list(sacctjson.jobs(text))


JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}))


@settings(deadline=None)
@given(st.data())
def test_a_mutated_answer_never_raises(data: st.DataObject) -> None:
    document = json.loads(TEXT)
    document["jobs"] = document["jobs"][:2]
    here: Any = data.draw(st.sampled_from(document["jobs"]))
    while True:
        places = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not places:
            return
        place = data.draw(st.sampled_from(places))
        if isinstance(here[place], dict | list) and data.draw(st.booleans()):
            here = here[place]
            continue
        here[place] = data.draw(JUNK)
        break
    for block in sacctjson.jobs(json.dumps(document)):
        assert all(len(values) == block.size for values in block.columns.values())
