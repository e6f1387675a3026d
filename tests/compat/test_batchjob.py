"""Ids and names as the batch job stats server has them."""

from typing import Any

import pytest

from jobsight.compat import batchjob

KEYS = [
    "jobid", "id", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "start", "end", "submitts",
    "startts", "endts", "elapsed", "exitcode", "state", "nnodes", "ncpus", "nodelist", "nodelistexp", "jobname",
    "workdir",
]  # fmt: skip


def job(**changes: Any) -> dict[str, Any]:
    plain = {
        "id": "1009248", "number": "", "owner": "testusr", "account": "testacc", "partition": "part1", "name": "",
        "allocated": "compute-[0-2]", "nodes": ["compute-0"], "state": "ended", "started": 1676986622.5,
        "seen": 1677079846.9, "elapsed": 93224.4, "cpus": 8,
    }  # fmt: skip
    return plain | changes


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("1009248", "testusr", "testacc", "compute-[0-2]"), "0f0ac288-dbd4-a9a3-df3a-ab14ef9d51d5"),
        (("1009248", "", "", ""), "a0523e93-a037-c2b1-8b34-410c9996399c"),
        (("1009248", "1000", "testacc", "compute-[0-2]"), "ac28caf5-ce6c-35f6-73fb-47d9d43f7780"),
        (("1481508", "1002", "acc2", "compute-[0-2]"), "baee651d-df44-af2c-fa09-50f5523b5e19"),
        ((" 1009248", "testusr ", " TestAcc", "COMPUTE-[0-2]\n"), "0f0ac288-dbd4-a9a3-df3a-ab14ef9d51d5"),
    ],
)
def test_a_job_has_the_id_that_others_give_it(parts: tuple[str, str, str, str], expected: str) -> None:
    assert batchjob.unique_id(*parts) == expected


def test_a_users_name_keeps_its_case_in_the_id() -> None:
    assert batchjob.unique_id("1", "Ada", "a", "n") != batchjob.unique_id("1", "ada", "a", "n")


def test_a_sampled_job_has_every_key_and_null_for_what_only_the_scheduler_knows() -> None:
    found = batchjob.fields(job(), {})
    assert list(found) == KEYS
    assert found["id"] == "0f0ac288-dbd4-a9a3-df3a-ab14ef9d51d5"
    assert {key for key, value in found.items() if value is None} == {
        "qos", "group", "gid", "uid", "submit", "submitts", "exitcode", "state", "jobname", "workdir",
    }  # fmt: skip
    assert found["start"] == "2023-02-21T13:37:02+0000"
    assert found["startts"] == "1676986622500"
    assert found["elapsed"] == "1-01:53:44"
    assert (found["nnodes"], found["ncpus"]) == ("3", "8")
    assert found["nodelistexp"] == "compute-0|compute-1|compute-2"


def test_a_running_job_has_no_end() -> None:
    found = batchjob.fields(job(state="running"), {})
    assert (found["state"], found["end"], found["endts"]) == ("RUNNING", None, None)


def test_a_job_that_fell_silent_is_not_called_running() -> None:
    found = batchjob.fields(job(state="silent"), {})
    assert (found["state"], found["end"]) == (None, None)


def test_what_the_scheduler_says_comes_before_what_was_sampled() -> None:
    facts = {
        "job": "7", "owner": "ada", "uid": 1000, "account": "maths", "nodes": "n[01-03]", "state": "OUT_OF_MEMORY",
        "exit_code": 0, "exit_signal": 125, "submit": 1000.0, "start": 2000.0, "ended": 2060.0, "elapsed": 59.0,
        "cpus": 2, "node_count": 3, "name": "melt", "work_dir": "/home/ada", "qos": "normal",
    }  # fmt: skip
    found = batchjob.fields(job(), facts)
    assert (found["jobid"], found["user"], found["uid"], found["account"]) == ("7", "ada", "1000", "maths")
    assert (found["state"], found["exitcode"], found["elapsed"]) == ("OUT_OF_MEMORY", "0:125", "00:00:59")
    assert (found["submitts"], found["startts"], found["endts"]) == ("1000000", "2000000", "2060000")
    assert found["nodelistexp"] == "n01|n02|n03"
    assert found["id"] == batchjob.unique_id("7", "ada", "maths", "n[01-03]")
    assert batchjob.job_id(job(), facts, by_uid=True) == batchjob.unique_id("7", "1000", "maths", "n[01-03]")


def test_zero_is_not_missing() -> None:
    found = batchjob.fields(job(), {"exit_code": 0, "gid": 0, "elapsed": 0.0})
    assert (found["exitcode"], found["gid"], found["elapsed"]) == ("0:0", "0", "00:00:00")


def test_an_id_of_a_number_that_is_not_known_is_none() -> None:
    assert batchjob.job_id(job(), {"uid": None}, by_uid=True) is None


def test_a_node_list_nobody_can_read_leaves_the_nodes_that_were_seen() -> None:
    found = batchjob.fields(job(allocated="n[1-"), {})
    assert (found["nodelist"], found["nodelistexp"], found["nnodes"]) == ("n[1-", "compute-0", "1")
