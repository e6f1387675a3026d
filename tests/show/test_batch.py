"""What a scheduler says, on pages, in the lists and in both APIs."""

import time
from typing import Any
from urllib.parse import quote

import pytest

from jobsight.show import accounting
from jobsight.show.views import View
from jobsight.store.embedded import Embedded
from tests.store.contract import _line

Reached = Any
MIB = 2**20


@pytest.fixture
def told(store: Embedded) -> float:
    """When it was told: job 1, which was sampled, has failed; 90 waits, 91 runs where no agent is."""
    now = float(int(time.time()))
    common = {"owner": "ada", "account": "physics", "partition": "normal", "qos": "high", "requested_cpus": 4}
    rows: list[dict[str, Any]] = [
        {**common, "job": "1", "state": "FAILED", "submit": now - 90, "start": now - 70, "ended": now - 5, "cpus": 4,
         "elapsed": 65.0, "exit_code": 3, "exit_signal": 9, "nodes": "n1", "node_count": 1, "memory": 100 * MIB,
         "requested_memory": 100 * MIB, "time_limit": 600.0, "cpu_time": 40.0, "name": "</bdi><script>"},
        {**common, "job": "1", "step": "0", "state": "FAILED", "submit": now - 90, "start": now - 60, "name": "<i>",
         "ended": now - 5, "elapsed": 55.0, "exit_code": 3, "cpus": 2, "tasks": 2, "cpu_time": 39.0},
        {**common, "job": "90", "state": "PENDING", "submit": now - 9, "reason": "Priority", "array_job": "90",
         "array_waiting": "[1-5]"},
        {**common, "job": "91", "state": "RUNNING", "submit": now - 90, "start": now - 80, "cpus": 4,
         "nodes": "x[1-2]", "node_count": 2, "unlimited": True, "requested_gpus": 2, "gpus": 2},
    ]  # fmt: skip
    full = [{"scheduler": "slurm", "step": None, **row} for row in rows]
    names = {name for row in full for name in row}
    store.append([_line("slurmjob", now, {name: [row.get(name) for row in full] for name in names}, "ctl")]).result(
        10
    )
    store.digest()
    return now


def key(client: Any, number: str) -> str:
    (found,) = client.get(f"/api/v1/named/{number}").json()
    return quote(found["key"], safe="")


def test_page_of_an_ended_job_shows_how_it_ended_what_it_was_given_and_its_steps(
    told: float, reached: Reached
) -> None:
    client = reached()
    answer = client.get(f"/job/{key(client, '1')}")
    assert answer.status_code == 200
    for text in ("<b>FAILED</b>", "It failed, exit code 3 and signal 9.", "3:9", "100 MiB", "high", "&lt;i&gt;"):
        assert text in answer.text
    assert "<script>" not in answer.text.replace("<script>alert", "").split("<main")[1].split("</main>")[0]


def test_pages_of_jobs_that_wait_or_were_never_seen_are_whole(told: float, reached: Reached) -> None:
    client = reached()
    waiting, unseen = (client.get(f"/job/{key(client, number)}") for number in ("90", "91"))
    assert (waiting.status_code, unseen.status_code) == (200, 200)
    assert "It waits (Priority)." in waiting.text
    assert "no node yet" in waiting.text
    assert "no agent has seen this job" in unseen.text
    assert "no limit" in unseen.text
    for path in ("/", "/jobs", "/jobs?state=pending"):
        assert client.get(path).status_code == 200
    assert "90" in client.get("/jobs?state=pending").text


def test_list_can_be_asked_for_every_state(told: float, reached: Reached) -> None:
    client = reached()
    states = ("pending", "running", "ended", "silent")
    found = {state: {job["id"] for job in client.get(f"/api/v1/jobs?state={state}").json()} for state in states}
    assert found == {"pending": {"90"}, "running": {"2", "3", "4", "91"}, "ended": {"1"}, "silent": set()}
    everything = {job["id"]: job["state"] for job in client.get("/api/v1/jobs").json()}
    assert all(everything[number] == state for state, numbers in found.items() for number in numbers)


def test_stats_api_has_the_schedulers_fields(told: float, reached: Reached) -> None:
    client = reached()
    jobs = {job["jobid"]: job for job in client.get("/api/jobs").json()["data"]}
    ended, waiting = jobs["1"], jobs["90"]
    assert (ended["state"], ended["exitcode"], ended["qos"], ended["elapsed"]) == (
        "FAILED",
        "3:9",
        "high",
        "00:01:05",
    )
    assert [ended[name] for name in ("submitts", "startts", "endts")] == [
        f"{told + ago:.0f}000" for ago in (-90, -70, -5)
    ]
    assert (waiting["state"], waiting["start"], waiting["end"], waiting["nodelist"]) == ("PENDING", None, None, None)
    assert (jobs["91"]["nodelistexp"], jobs["91"]["endts"]) == ("x1|x2", None)


def test_terminal_shows_the_same(told: float, store: Embedded) -> None:
    view = View(store)
    (job,) = view.named("1", told)
    found = view.job(job["key"], told)
    assert found is not None
    text = accounting.told(found)
    assert "slurm says FAILED, exit code and signal 3:9" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["memory", "100", "MiB", "100", "MiB"] in [line[:5] for line in lines]
    assert any(line[:4] == ["0", "<i>", "FAILED", "3:0"] for line in lines)


def test_strays_are_listed_for_who_may_see_them(told: float, reached: Reached) -> None:
    assert reached().get("/api/v1/strays").json() == [], "no scheduler has told of its nodes"
