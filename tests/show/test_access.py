"""Everybody sees their own jobs and no others, whichever way they ask."""

import os
import pwd
import re
import time
from typing import Any

import pytest

from jobsight.serving import Access
from jobsight.show.access import Viewer, groups, user_name
from jobsight.show.peer import Caller
from jobsight.show.views import View
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.show.conftest import JOBS, Client, Reached

PROXY = "198.51.100.7"
ACCESS = Access(admins=("root2",), coordinators={"physics": ("carol",)}, trusted_proxies=("198.51.100.0/24",))
OWN = {"ada": {"1"}, "bob": {"2", "3"}, "carol": {"1", "2", "4"}, "root2": {"1", "2", "3", "4"}, "eve": set()}


def by(name: str) -> dict[str, str]:
    return {"X-Grafana-User": name}


def numbers(client: Client, path: str, headers: dict[str, str]) -> set[str]:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return {job["id"] for job in answer.json()}


def keys(store: Embedded) -> dict[str, str]:
    return {job["id"]: job["key"] for job in store.jobs(JobQuery(), time.time())}


@pytest.mark.parametrize("name", OWN)
def test_lists_searches_and_names_have_ones_own_jobs_only(reached: Reached, name: str) -> None:
    client = reached(PROXY, access=ACCESS)
    assert numbers(client, "/api/v1/jobs", by(name)) == OWN[name]
    assert numbers(client, "/api/v1/jobs?text=work", by(name)) == OWN[name]
    assert numbers(client, "/api/v1/jobs?owner=bob", by(name)) == OWN[name] & {"2", "3"}
    assert numbers(client, "/api/v1/jobs?node=n1&since=", by(name)) == OWN[name] & {"1"}
    for number in JOBS:
        assert numbers(client, f"/api/v1/named/{number}", by(name)) == OWN[name] & {number}


@pytest.mark.parametrize("name", OWN)
def test_somebody_elses_job_is_not_there_as_one_that_never_was(reached: Reached, store: Embedded, name: str) -> None:
    client = reached(PROXY, access=ACCESS)
    for number, key in keys(store).items():
        for path in ("/api/v1/job/", "/job/", "/api/v1/named/"):
            answer = client.get(path + key, headers=by(name))
            never = client.get(path + "x" * len(key), headers=by(name))
            if number in OWN[name]:
                assert answer.status_code == 200
            else:
                assert answer.status_code == never.status_code
                assert answer.text.replace(key, "x" * len(key)) == never.text


@pytest.mark.parametrize("name", OWN)
def test_pages_show_ones_own_jobs_only(reached: Reached, name: str) -> None:
    client = reached(PROXY, access=ACCESS)
    for path in ("/", "/jobs?since="):
        answer = client.get(path, headers=by(name))
        assert answer.status_code == 200
        assert set(re.findall(r"work(\d)", answer.text)) == OWN[name]
        for number, (owner, _, _) in JOBS.items():
            if number not in OWN[name] and owner != name and not any(JOBS[n][0] == owner for n in OWN[name]):
                assert owner not in answer.text


def test_who_is_not_known_sees_nothing(reached: Reached, store: Embedded) -> None:
    client = reached(access=ACCESS)
    key = keys(store)["1"]
    for path in ("/", "/jobs", f"/job/{key}", "/api/v1/nodes", "/api/v1/jobs", f"/api/v1/job/{key}",
                 "/api/v1/named/1", "/api/v1/store", "/api/accounts", "/api/jobs"):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == 401, path
        assert "work1" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        by("root2"),
        by("root2") | {"X-Forwarded-For": PROXY},
        by("root2") | {"Forwarded": f"for={PROXY}", "X-Real-IP": PROXY},
        {"X-Dashboard-User": "all"},
        {"Authorization": "Basic cm9vdDI6eA=="},
    ],
)
def test_a_name_is_believed_from_trusted_proxies_alone(reached: Reached, headers: dict[str, str]) -> None:
    assert reached(access=ACCESS).get("/api/v1/jobs", headers=headers).status_code == 401


@pytest.mark.parametrize("address", [PROXY, f"::ffff:{PROXY}"])
def test_a_proxy_is_trusted_by_its_address_however_it_is_written(reached: Reached, address: str) -> None:
    assert numbers(reached(address, access=ACCESS), "/api/v1/jobs", by("ada")) == {"1"}


def test_a_proxy_that_names_two_users_names_nobody(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    answer = client.get("/api/v1/jobs", headers=[("X-Grafana-User", "ada"), ("X-Grafana-User", "root2")])
    assert answer.status_code == 400
    assert client.get("/api/v1/jobs", headers=by(" ")).status_code == 401


def test_a_proxy_may_have_to_show_a_password_of_its_own(reached: Reached) -> None:
    access = ACCESS._replace(proxy_users=("grafana",))
    assert reached(PROXY, access=access).get("/api/v1/jobs", headers=by("ada")).status_code == 401
    shown = reached(PROXY, {"password_user": "grafana"}, access=access)
    assert numbers(shown, "/api/v1/jobs", by("ada")) == {"1"}
    assert shown.get("/api/v1/jobs").status_code == 401
    elsewhere = reached("192.0.2.1", {"password_user": "grafana"}, access=access)
    assert elsewhere.get("/api/v1/jobs", headers=by("ada")).status_code == 401


def test_a_password_names_its_user(reached: Reached) -> None:
    client = reached(state={"password_user": "bob"}, access=ACCESS)
    assert numbers(client, "/api/v1/jobs", {}) == {"2", "3"}
    assert numbers(client, "/api/v1/jobs", by("root2")) == {"2", "3"}


def test_a_caller_on_the_socket_is_who_the_kernel_says(reached: Reached) -> None:
    nobody = 4_000_000_001
    assert numbers(reached(state={"caller": Caller(0, 0)}, access=ACCESS), "/api/v1/jobs", {}) == set(JOBS)
    assert numbers(reached(state={"caller": Caller(nobody, 0)}, access=ACCESS), "/api/v1/jobs", by("root2")) == set()
    assert user_name(nobody) == str(nobody)
    ours = reached(state={"caller": Caller(os.geteuid(), 0)}, access=ACCESS)
    assert numbers(ours, "/api/v1/jobs", {}) == set(JOBS)


def test_what_was_for_one_is_kept_by_nobody_on_the_way(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    for path in ("/", "/api/v1/jobs", "/api/jobs"):
        assert client.get(path, headers=by("ada")).headers["Cache-Control"] == "private, no-store"
    assert "Cache-Control" not in client.get("/static/page.css").headers


def test_the_page_says_who_looks(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert "You see your own jobs and those of physics" in client.get("/jobs", headers=by("carol")).text
    assert "You see everybody&#39;s jobs" in client.get("/jobs", headers=by("root2")).text
    assert "<b>x</b>" not in client.get("/jobs", headers=by("<b>x</b>")).text


def test_members_of_a_group_may_be_administrators(reached: Reached) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    mine = groups(me)
    assert mine
    access = ACCESS._replace(admin_groups=(min(mine),))
    assert numbers(reached(PROXY, access=access), "/api/v1/jobs", by(me)) == set(JOBS)
    assert numbers(reached(PROXY, access=access), "/api/v1/jobs", by("eve")) == set()
    assert groups("no such user") == set()


def test_without_settings_everybody_sees_everything(reached: Reached) -> None:
    assert numbers(reached(), "/api/v1/jobs", {}) == set(JOBS)


def test_what_the_store_holds_is_for_administrators(reached: Reached) -> None:
    client = reached(PROXY, access=ACCESS)
    assert client.get("/api/v1/store", headers=by("ada")).status_code == 403
    assert "tables" in client.get("/api/v1/store", headers=by("root2")).json()


def test_nodes_are_everybodys_and_say_nothing_of_users(reached: Reached) -> None:
    answer = reached(PROXY, access=ACCESS).get("/api/v1/nodes", headers=by("eve"))
    assert [node["name"] for node in answer.json()] == ["n1", "n2", "n3", "n4"]
    assert not any(owner in answer.text for owner, _, _ in JOBS.values())


def test_a_viewer_without_a_name_sees_nothing(store: Embedded) -> None:
    view: Any = View(store, Viewer(""))
    assert view.running(0) == []
    assert view.accounts() == []


@pytest.mark.parametrize(
    ("name", "status"), [("127.0.0.1:9020", 200), ("localhost", 200), ("[::1]:9020", 200), ("evil.example", 400)]
)
def test_a_local_server_answers_to_local_names_alone(reached: Reached, name: str, status: int) -> None:
    assert reached(local=True).get("/api/v1/jobs", headers={"Host": name}).status_code == status
