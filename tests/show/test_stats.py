"""The stats API: parameters, envelope and access as dashboards know them."""

import time
from typing import Any

import pytest

from jobsight.compat.batchjob import unique_id
from jobsight.schema.units import Seconds
from jobsight.serving import Access, Stats
from jobsight.show import stats
from jobsight.show.views import View
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import StoreError
from tests.show.conftest import JOBS, Reached
from tests.store.contract import process_line

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), coordinators={"physics": ("carol",)}, trusted_proxies=(PROXY,))


def asked(client: Any, path: str, user: str, whose: str = "") -> list[Any]:
    headers = {"X-Grafana-User": user} | ({"X-Dashboard-User": whose} if whose else {})
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    body = answer.json()
    assert (body["status"], body["error"], body["errorType"], body["warnings"]) == ("success", "", "", [])
    found: list[Any] = body["data"]
    return found


def ids(found: list[Any]) -> set[str]:
    return {job["jobid"] for job in found}


def test_health_is_a_word(reached: Reached, store: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    client = reached(access=ACCESS)
    assert (client.get("/api/health").status_code, client.get("/api/health").text) == (200, "OK")

    def away(*_: object) -> None:
        raise StoreError("gone")

    monkeypatch.setattr(store, "query", away)
    assert (client.get("/api/health").status_code, client.get("/api/health").text) == (503, "KO")


def test_a_user_has_their_own_jobs_and_accounts(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert ids(asked(client, "/api/jobs", "bob")) == {"2", "3"}
    assert asked(client, "/api/accounts", "bob") == [{"id": "biology"}, {"id": "physics"}]
    assert asked(client, "/api/accounts", "ada") == [{"id": "physics"}]
    assert asked(client, "/api/jobs", "eve") == asked(client, "/api/accounts", "eve") == []


def test_a_coordinator_has_the_jobs_of_the_account_too(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert ids(asked(client, "/api/jobs", "carol")) == {"1", "2", "4"}
    assert ids(asked(client, "/api/jobs?account=physics", "carol")) == {"1", "2"}


def test_an_administrator_sees_their_own_or_another_users_or_all(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert asked(client, "/api/jobs", "root2") == []
    assert ids(asked(client, "/api/jobs", "root2", "bob")) == {"2", "3"}
    assert ids(asked(client, "/api/jobs", "root2", "all")) == set(JOBS)
    assert asked(client, "/api/accounts", "root2", "all") == [{"id": "biology"}, {"id": "physics"}]


def test_nobody_else_may_choose_whose_jobs_to_see(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert ids(asked(client, "/api/jobs", "ada", "bob")) == {"1"}
    assert ids(asked(client, "/api/jobs", "ada", "all")) == {"1"}


def test_parameters_narrow_together(reached: Reached) -> None:
    client = reached()
    assert ids(asked(client, "/api/jobs?account=physics&account=biology", "")) == set(JOBS)
    assert ids(asked(client, "/api/jobs?account=physics&jobid=1&jobid=3", "")) == {"1"}
    uuid = unique_id("2", "bob", "physics", "n2")
    (job,) = asked(client, f"/api/jobs?jobuuid={uuid}", "")
    assert (job["jobid"], job["id"], job["user"], job["nodelist"]) == ("2", uuid, "bob", "n2")
    assert asked(client, f"/api/jobs?jobuuid={uuid}&jobid=1", "") == []


def test_the_window_is_about_the_start_and_does_not_hold_for_named_jobs(reached: Reached) -> None:
    client = reached()
    now = time.time()
    early = f"from={now - 5000:.0f}&to={now - 4000:.0f}"
    assert asked(client, f"/api/jobs?{early}", "") == []
    assert ids(asked(client, f"/api/jobs?{early}&jobid=1", "")) == {"1"}
    assert ids(asked(client, f"/api/jobs?from={now - 4000:.0f}&to={now:.0f}", "")) == set(JOBS)
    assert ids(asked(client, f"/api/jobs?to={now + 8 * 86400:.0f}", "")) == set()


@pytest.mark.parametrize("window", ["from=x", "to=nan", "from=1e999", "from=0", "from=20&to=10", f"from={2**31}"])
def test_a_window_that_cannot_be_is_an_error_in_an_envelope(reached: Reached, window: str) -> None:
    answer = reached().get(f"/api/jobs?{window}")
    assert answer.status_code == 400
    body = answer.json()
    assert (body["status"], body["errorType"], body["data"]) == ("error", "bad_data", [])
    assert body["error"]


def test_who_is_not_known_gets_an_envelope_too(reached: Reached) -> None:
    answer = reached(access=ACCESS).get("/api/jobs", headers={"X-Grafana-User": "ada"})
    assert (answer.status_code, answer.json()["status"], answer.json()["errorType"]) == (401, "error", "unauthorized")


def test_ids_may_be_made_of_numbers(reached: Reached, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"bob": 1002}
    monkeypatch.setattr(stats, "user_number", numbers.get)
    found = asked(reached(statistics=Stats(uid_in_id=True)), "/api/jobs", "")
    # A number that is not known makes no id.
    assert {job["jobid"]: job["id"] for job in found} == {
        "1": None, "2": unique_id("2", "1002", "physics", "n2"), "3": unique_id("3", "1002", "biology", "n3"),
        "4": None,
    }  # fmt: skip


@pytest.mark.parametrize("owner", ["a\0b", "9" * 5000])
def test_an_owner_of_an_impossible_name_does_not_cost_others_their_list(
    reached: Reached, store: Embedded, owner: str
) -> None:
    now = time.time() - 10
    store.append([process_line(now, node="n9", scheduler="slurm", job="9", owner=owner)]).result(10)
    store.digest()
    found = asked(reached(), "/api/jobs", "")
    assert {job["jobid"]: job["uid"] for job in found if job["jobid"] == "9"} == {"9": None}
    assert ids(found) == {*JOBS, "9"}


def test_only_get_is_answered(reached: Reached) -> None:
    assert reached().post("/api/jobs").status_code == 405


def test_jobs_that_ran_for_less_than_a_site_cares_for_are_not_listed(
    reached: Reached, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = View.jobs

    def ended(view: View, *asked: Any) -> list[dict[str, Any]]:
        return [job | {"state": "ended", "elapsed": 30.0 * int(job["id"])} for job in true(view, *asked)]

    monkeypatch.setattr(View, "jobs", ended)
    assert ids(asked(reached(statistics=Stats(shortest=Seconds(60))), "/api/jobs", "")) == {"2", "3", "4"}
