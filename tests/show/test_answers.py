"""Answers on the page, in the API and side by side, and nobody else's."""

import time
from urllib.parse import quote

import pytest

from jobsight.serving import Access
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.show.conftest import Reached

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), trusted_proxies=("198.51.100.0/24",))


@pytest.fixture
def keys(store: Embedded) -> dict[str, str]:
    return {job["id"]: job["key"] for job in store.jobs(JobQuery(), time.time())}


def test_a_jobs_page_answers_what_bound_it_what_to_ask_for_and_whether_it_will_scale(
    reached: Reached, keys: dict[str, str]
) -> None:
    page = reached().get(f"/job/{quote(keys['1'], safe='')}")
    assert page.status_code == 200
    for words in ("Course", "Next time", "Will it scale?", "It is still running", "No speed-up law"):
        assert words in page.text


def test_the_api_has_the_same_answers(reached: Reached, keys: dict[str, str]) -> None:
    client = reached()
    job = client.get(f"/api/v1/job/{keys['1']}").json()
    assert job["answers"]["verdict"] == job["verdict"]
    assert job["answers"]["ending"]["kind"] == "running"
    told = client.get(f"/api/v1/scaling/{keys['1']}").json()
    assert told["law"] is None
    assert told["refused"].startswith("There are 0 finished runs")


def test_jobs_side_by_side_are_in_the_order_asked_for(reached: Reached, keys: dict[str, str]) -> None:
    page = reached().get(f"/compare?job={keys['2']}&job={keys['1']}").text
    assert "2 jobs side by side" in page
    assert page.index("2 work2") < page.index("1 work1")
    assert "cores used, mean" in page


def test_an_address_without_jobs_says_what_would_be_there(reached: Reached) -> None:
    page = reached().get("/compare")
    assert page.status_code == 200
    assert "/compare?job=KEY" in page.text


def test_somebody_elses_job_is_neither_compared_nor_scaled(reached: Reached, keys: dict[str, str]) -> None:
    client, ada = reached(PROXY, access=ACCESS), {"X-Grafana-User": "ada"}
    page = client.get(f"/compare?job={keys['1']}&job={keys['2']}", ada).text
    assert "work1" in page
    assert "work2" not in page
    assert "1 job not found" in page
    assert client.get(f"/api/v1/scaling/{keys['2']}", ada).status_code == 404
    assert client.get(f"/api/v1/scaling/{keys['1']}", ada).status_code == 200
