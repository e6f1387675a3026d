"""Energy of a simulated cluster: it adds up on every node in every hour, and jobs have what they took."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.tending import settle
from jobsight.metering import Energy
from jobsight.simulate import meter
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.machine import SYSTEM_CPU
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import Sampling
from jobsight.simulate.truth import Truth
from jobsight.store.protocol import JobQuery, Store

COLLECTORS = ("hardware", "gpu", "cgroup", "process", "allocation", "power", "ipmi", "slurmjob")
EVERY = 120.0


def idle(cluster: Cluster, kind: str) -> float:
    """What a kind of node takes anyway, as its best meter sees it."""
    make = next(node.make for node in cluster.plan.site.nodes if node.make.kind == kind)
    counted = make.sockets * (meter.PACKAGE + meter.MEMORY)
    counted += (meter.CPU_SECOND + meter.CPU_MEMORY) * SYSTEM_CPU * make.cores
    return counted if kind == "interactive" else counted + meter.OTHER


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(Wish(seed=5, nodes=8, days=0.2), Sampling(every=EVERY, collectors=COLLECTORS))


@pytest.fixture(scope="module")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path: Path = tmp_path_factory.mktemp("metered")
    opened = open_store(str(path / "store"))
    fill(cluster, opened)
    kinds = {"c*": "cpu", "gpu*": "gpu", "bigmem*": "fat", "int*": "interactive"}
    baseline = {pattern: idle(cluster, kind) for pattern, kind in kinds.items()}
    settle(opened, cluster.plan.end + 86400, energy=Energy(baseline=baseline))
    yield opened
    opened.close()


def test_jobs_and_system_and_idle_are_what_each_node_took_in_each_hour(store: Store) -> None:
    rows = store.query(
        "SELECT node, time, sum(energy), sum(energy_full), sum(whole) FROM energy GROUP BY node, time "
        "HAVING sum(whole) > 0"
    )
    assert len({row[0] for row in rows}) == 7
    for _, _, energy, full, whole in rows:
        assert energy == pytest.approx(whole, rel=1e-9)
        assert full == pytest.approx(whole, rel=1e-9)


def test_every_kind_of_machine_is_measured_by_the_best_it_has(store: Store) -> None:
    rows = store.query(
        "SELECT node, source, grade, sum(covered) FROM energy WHERE part = 'idle' AND source <> '' "
        "GROUP BY node, source, grade"
    )
    most = {
        node: max((covered, source, grade) for n, source, grade, covered in rows if n == node) for node, *_ in rows
    }
    assert {node: found[1:] for node, found in most.items()} == {
        "c1-1": ("ipmi", "A"), "c1-2": ("ipmi", "A"), "c1-3": ("ipmi", "A"), "bigmem-1": ("ipmi", "A"),
        "gpu-1": ("ipmi", "A"), "int-1": ("rapl", "B"), "int-2": ("rapl", "B"),
    }  # fmt: skip


def known(cluster: Cluster, store: Store) -> Iterator[tuple[Truth, float, float]]:
    """Jobs that lived within what was sampled, with what they took and what was found."""
    found = dict(store.query("SELECT job_key, sum(energy) FROM energy WHERE part = 'job' GROUP BY job_key"))
    keys = {
        (one["number"] or one["id"], round(one["started"])): one["key"]
        for one in store.jobs(JobQuery(limit=10**6), cluster.plan.end)
    }
    begin, end = cluster.plan.wish.begin + 600, cluster.plan.end - 600
    for truth in cluster.truths:
        key = keys.get((truth.number, round(truth.start))) if truth.started else None
        if truth.scheduler == "slurm" and key in found and truth.start > begin and truth.end < end:
            yield truth, meter.taken(truth), found[key]


def test_jobs_have_what_their_work_took(cluster: Cluster, store: Store) -> None:
    jobs = list(known(cluster, store))
    assert len(jobs) >= 10
    assert sum(found for *_, found in jobs) == pytest.approx(sum(took for _, took, _ in jobs), rel=0.05)
    # Work of five minutes is shared by its mean, and memory's by how much is held: of a long job that is little.
    long = [(took, found) for truth, took, found in jobs if truth.end - truth.start > 3600]
    assert long
    for took, found in long:
        assert found == pytest.approx(took, rel=0.1, abs=15_000)


def test_jobs_shorter_than_a_sampling_interval_have_their_share(cluster: Cluster, store: Store) -> None:
    short = [(took, found) for truth, took, found in known(cluster, store) if truth.end - truth.start < 3 * EVERY]
    assert short
    for took, found in short:
        assert 0 < found < 3 * took + 5000
