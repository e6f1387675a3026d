"""Findings on their page, on the job's, in the API, and only to those they are about."""

import time
from typing import Any
from urllib.parse import quote

import pytest

from jobsight.analyse.finding import Found
from jobsight.analyse.judge import judge
from jobsight.analyse.standing import merged
from jobsight.serving import Access
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.analyse.findings.scenes import scene
from tests.show.conftest import Reached

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), trusted_proxies=("198.51.100.0/24",))
OURS = {"X-Jobsight": "1"}


def about(owner: str, key: str, job: str, **more: Any) -> Found:
    """That a job idles."""
    (one,) = judge(scene({"jobs": [{"id": job, "owner": owner, "parts": [{"cpu_time": 0.1 * 4 * 3600}]}]}))
    now = time.time()
    one.subject, one.begin, one.end = key, now - 600, now - 60
    for name, value in more.items():
        setattr(one, name, value)
    return one


@pytest.fixture
def found(store: Embedded) -> dict[str, Found]:
    """One of ada's, one of bob's, and one of a node."""
    keys = {job["id"]: job["key"] for job in store.jobs(JobQuery(), time.time())}
    made = {
        "ada": about("ada", keys["1"], "1"),
        "bob": about("bob", keys["2"], "2", sentence="<script>alert(1)</script>."),
        "node": about("", "n1", "9", of="node", number="", code="response", title="Poor response", core_hours=None),
    }
    store.findings.keep(merged(made.values(), (), time.time()))
    return made


def test_the_page_says_how_many_there_are_and_what_each_saw(reached: Reached, found: dict[str, Found]) -> None:
    page = reached().get("/findings")
    assert page.status_code == 200
    assert "3 findings since 7d" in page.text
    assert "It used 0.1 of 8 cores over 4:00:00." in page.text
    assert found["ada"].how in page.text
    assert "<script>alert" not in page.text
    assert 'href="/findings"' in page.text


@pytest.mark.parametrize("by", ["code", "job", "user", "account", "node", "nonsense"])
def test_the_page_adds_up_by_whatever_is_asked(reached: Reached, found: dict[str, Found], by: str) -> None:
    assert found
    page = reached().get(f"/findings?by={by}")
    assert page.status_code == 200
    assert "63.2" in page.text, "core-hours of two jobs"


def test_filters_and_the_same_as_json(reached: Reached, found: dict[str, Found]) -> None:
    client = reached()
    everything = client.get("/api/v1/findings").json()
    assert {one["id"] for one in everything} == {one.id for one in found.values()}
    (bobs,) = client.get("/api/v1/findings?owner=bob&code=idle_cores&state=new").json()
    assert bobs["id"] == found["bob"].id
    assert client.get("/api/v1/findings?since=1m&until=1m").json() == []
    page = client.get("/findings?owner=nobody").text
    assert "Nothing was found that is worth telling." in page


@pytest.mark.parametrize(
    ("asked", "said"),
    [("code=idle", "no finding"), ("state=old", "no state"), ("since=yesterdayish", "yesterdayish")],
)
def test_what_cannot_be_is_refused_with_a_sentence(reached: Reached, asked: str, said: str) -> None:
    client = reached()
    assert said in client.get(f"/api/v1/findings?{asked}").json()["detail"]
    page = client.get(f"/findings?{asked}")
    assert page.status_code == 400
    assert said in page.text


def test_everybody_sees_their_own_and_an_administrator_all(reached: Reached, found: dict[str, Found]) -> None:
    client = reached(PROXY, access=ACCESS)

    def seen(user: str) -> set[str]:
        return {one["id"] for one in client.get("/api/v1/findings", {"X-Grafana-User": user}).json()}

    assert seen("ada") == {found["ada"].id}
    assert seen("carol") == set()
    assert seen("root2") == {one.id for one in found.values()}
    page = client.get("/findings", {"X-Grafana-User": "ada"}).text
    assert "1 finding since 7d" in page
    assert "bob" not in page


def test_only_whom_it_is_about_acknowledges_and_no_page_from_elsewhere(
    reached: Reached, found: dict[str, Found]
) -> None:
    client = reached(PROXY, access=ACCESS)
    place, ada = f"/api/v1/finding/{found['ada'].id}?note=agreed", {"X-Grafana-User": "ada"}
    assert client.post(place, ada).status_code == 403, "a browser can be made to send this"
    assert client.post(place, {"X-Grafana-User": "bob", **OURS}).status_code == 404
    assert client.post(place, ada | OURS).status_code == 200
    (one,) = client.get("/api/v1/findings", ada).json()
    assert (one["state"], one["acknowledged_by"], one["note"]) == ("acknowledged", "ada", "agreed")


def test_a_jobs_page_and_api_tell_what_was_found_about_it(reached: Reached, found: dict[str, Found]) -> None:
    client = reached()
    place = quote(found["ada"].subject, safe="")
    (one,) = client.get(f"/api/v1/job/{place}").json()["findings"]
    assert one["id"] == found["ada"].id
    page = client.get(f"/job/{place}").text
    assert "Idle cores" in page
    assert one["sentence"] in page
    assert found["bob"].title not in client.get("/job/" + quote(found["node"].subject, safe="")).text


def test_thresholds_are_tried_by_administrators(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    asked = "/api/v1/backtest?tried=idle_cores.share=0.9"
    assert client.get(asked, {"X-Grafana-User": "ada"}).status_code == 403
    answer = client.get(asked, {"X-Grafana-User": "root2"}).json()
    assert answer["counts"]["findings_after"] == len(answer["added"])
    refused = client.get("/api/v1/backtest?tried=idle_cores.part=1", {"X-Grafana-User": "root2"})
    assert refused.status_code == 400
    assert "unknown key findings.idle_cores.part" in refused.json()["detail"]
