"""A server's look at everything now and then, on a small simulated cluster."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.told import Chosen, Told
from jobsight.analyse.watch import EVERY, Watch
from jobsight.settings import SettingsError
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.plan import BEGIN, Wish
from jobsight.simulate.sampler import Sampling
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from jobsight.store.sight import Sight

HOUR = 3600.0
COLLECTORS = ("hardware", "load", "pressure", "gpu", "gpucard", "cgroup", "process", "slurmjob", "slurmnode")


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(Wish(seed=2, nodes=14, days=0.5, sets=1), Sampling(600.0, COLLECTORS))


@pytest.fixture(scope="module")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    path: Path = tmp_path_factory.mktemp("watched")
    opened = open_store(str(path / "store"))
    fill(cluster, opened)
    yield opened
    opened.close()


def ids(found: list[dict[str, Any]]) -> set[str]:
    return {one["id"] for one in found}


def test_what_is_kept_is_what_a_look_says(store: Embedded, cluster: Cluster) -> None:
    now = cluster.plan.end
    watch, told = Watch({}), Told(store, None, {})
    assert watch.look(store, now) > 5
    chosen = Chosen(BEGIN, now)
    kept, looked = told.kept(chosen), told.now(chosen, now)
    assert ids(kept) == ids(looked)
    assert {one["state"] for one in kept} == {"new"}
    # Not again before it is time, and then nothing is new.
    assert watch.look(store, now + 60) == 0
    assert watch.look(store, now + EVERY) > 0
    later = told.kept(Chosen(now + 1, math.inf))
    assert not [one for one in later if one["state"] == "new"]
    first = {one["id"]: one["first"] for one in told.kept(chosen)}
    assert all(first[one["id"]] == now for one in kept)


def test_a_user_is_told_of_nobody_else(store: Embedded, cluster: Cluster) -> None:
    now = cluster.plan.end
    Watch({}).look(store, now)
    chosen = Chosen(BEGIN, now)
    everything = Told(store, None, {}).kept(chosen)
    owner = next(one["owner"] for one in everything if one["owner"])
    mine = Told(store, Sight((owner,)), {})
    expected = {one["id"] for one in everything if one["owner"] == owner}
    assert ids(mine.kept(chosen)) == ids(mine.now(chosen, now)) == expected
    assert expected < ids(everything)
    other = next(one["id"] for one in everything if one["owner"] != owner)
    assert not mine.acknowledge(other, owner, "", now)
    tested = mine.backtest(chosen, ["idle_cores.share=0.99"], now)
    assert {one["owner"] for one in tested["added"]} <= {owner}


def test_a_job_is_told_the_same_by_itself_and_among_all(store: Embedded, cluster: Cluster) -> None:
    now = cluster.plan.end
    told = Told(store, None, {})
    listed = told.now(Chosen(BEGIN, now), now)
    of_jobs = {one["id"]: one for one in listed if one["of"] == "job" and one["code"] != "hog"}
    alone: dict[str, dict[str, Any]] = {}
    for document in store.jobs(JobQuery(since=BEGIN, limit=10**6), now):
        alone |= {one["id"]: one for one in told.about(document, now) if one["code"] != "hog"}
    assert alone.keys() == of_jobs.keys()
    assert all(alone[number]["sentence"] == one["sentence"] for number, one in of_jobs.items())


def test_an_acknowledged_finding_stays_so(store: Embedded, cluster: Cluster) -> None:
    now = cluster.plan.end
    told, watch = Told(store, None, {}), Watch({})
    watch.look(store, now)
    number = told.kept(Chosen(BEGIN, now))[0]["id"]
    assert told.acknowledge(number, "root", "we talked", now)
    Watch({}).look(store, now + EVERY)
    (one,) = (one for one in told.kept(Chosen(BEGIN, now)) if one["id"] == number)
    assert (one["state"], one["acknowledged_by"], one["note"]) == ("acknowledged", "root", "we talked")
    assert ids(told.kept(Chosen(BEGIN, now, state="acknowledged"))) == {number}
    assert not told.acknowledge("nosuchnumber", "root", "", now)
    assert not told.acknowledge("a/../b\0", "root", "", now)


def test_filters_choose(store: Embedded, cluster: Cluster) -> None:
    now = cluster.plan.end
    told = Told(store, None, {})
    everything = told.now(Chosen(BEGIN, now), now)
    one = everything[0]
    for name, key in (("owner", "owner"), ("account", "account"), ("code", "code")):
        chosen = told.now(Chosen(BEGIN, now, **{name: one[key]}), now)
        assert ids(chosen) == {other["id"] for other in everything if other[key] == one[key]}
    node = one["nodes"][0]
    assert ids(told.now(Chosen(BEGIN, now, node=node), now)) == {o["id"] for o in everything if node in o["nodes"]}


def test_a_watch_with_settings_that_cannot_be_is_not_made() -> None:
    with pytest.raises(SettingsError, match=r"unknown key findings\.hogs"):
        Watch({"hogs": {}})
