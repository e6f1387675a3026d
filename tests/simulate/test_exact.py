"""What the real ledger makes of the messages, set against the truth they were made from."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.recount import recount
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import Sampler, Sampling
from jobsight.simulate.truth import Place, Truth
from jobsight.store.protocol import JobQuery, Store
from tests.simulate.conftest import EVERY

# One microsecond a reading is all that a control group rounds.
MICRO = 1e-6


class Observed(NamedTuple):
    """A job on a node up to the last sample that saw it there."""

    truth: Truth
    place: Place
    last: float


def observed(cluster: Cluster) -> Iterator[Observed]:
    """Everything that at least one sample saw, worked out anew from plan and sampling times alone."""
    plan = cluster.plan
    times = {
        n.name: list(Sampler(plan, n, cluster.sampling).times(plan.wish.begin, plan.end)) for n in plan.site.nodes
    }
    for truth in plan.truths:
        for place in truth.places:
            boots = plan.boots[place.node.name]
            seen = [
                time
                for time in times[place.node.name]
                if truth.start + 0.02 < time < truth.end and any(b.begin <= time < b.end for b in boots)
            ]
            if seen:
                yield Observed(truth, place, seen[-1])


def documents(store: Store) -> list[dict[str, Any]]:
    return store.jobs(JobQuery(limit=100_000), 4e9)


def parts(store: Store, scheduler: str, source: str) -> dict[tuple[str, str], dict[str, float]]:
    """Totals by job number and node."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: {"cpu_time": 0.0, "read": 0, "written": 0})
    for job in documents(store):
        for part in job["parts"] if job["scheduler"] == scheduler else ():
            if part["source"] == source:
                for name, total in found[job["id"], part["node"]].items():
                    found[job["id"], part["node"]][name] = total + part[name]
    return found


def test_every_batch_job_a_sample_saw_is_in_the_store_and_no_other(cluster: Cluster, store: Store) -> None:
    expected = {(o.truth.number, o.place.node.name) for o in observed(cluster) if o.truth.scheduler == "slurm"}
    assert set(parts(store, "slurm", "cgroup")) == expected
    assert len(expected) > 150


def test_totals_of_batch_jobs_are_exact(cluster: Cluster, store: Store) -> None:
    expected: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for truth, place, last in observed(cluster):
        if truth.scheduler == "slurm":
            level = place.curve.at(last)
            for number, value in enumerate((level.cpu, level.read, level.written)):
                expected[truth.number, place.node.name][number] += value
    found = parts(store, "slurm", "cgroup")
    for place_of, (cpu, read, written) in expected.items():
        total = found[place_of]
        assert total["cpu_time"] == pytest.approx(cpu, rel=1e-6, abs=3 * MICRO), place_of
        assert total["read"] == pytest.approx(read, rel=1e-6, abs=3), place_of
        assert total["written"] == pytest.approx(written, rel=1e-6, abs=3), place_of


def test_sessions_are_exact_to_a_tick_of_each_of_their_processes(cluster: Cluster, store: Store) -> None:
    found = parts(store, "session", "process")
    sessions = [one for one in observed(cluster) if one.truth.scheduler == "session"]
    assert sessions
    for truth, place, last in sessions:
        total = found[truth.number, place.node.name]["cpu_time"]
        assert total == pytest.approx(place.curve.at(last).cpu, abs=0.0201), truth.number


def test_time_on_cards_is_exact_for_who_was_first_there(tmp_path: Path) -> None:
    """Of a card that passed on between two samples nobody can tell whose the work in between was."""
    cluster = Cluster(Wish(seed=3, nodes=40, days=0.5), Sampling(EVERY, ("process", "cgroup", "allocation", "gpu")))
    store = open_store(str(tmp_path / "store"))
    fill(cluster, store)
    found: dict[tuple[str, str], float] = defaultdict(float)
    for job in documents(store):
        for part in job["parts"]:
            if part["source"] == "gpu":
                found[job["id"], part["node"]] += part["gpu_time"]
    lives = Counter(truth.number for truth in cluster.truths)
    # Nobody looked at the cards before the first sample.
    watched = cluster.plan.wish.begin + EVERY
    ran = [one for one in observed(cluster) if one.truth.start > watched and lives[one.truth.number] == 1]
    held = [one for one in ran if one.place.gpus]
    stays = [
        (place.node.name, card, truth.end)
        for truth in cluster.plan.truths
        for place in truth.places
        for card in place.gpus
    ]
    alone = [one for one in held if not any(_before(one, *stay) for stay in stays)]
    assert len(alone) > 2
    for truth, place, last in alone:
        worked = len(place.gpus) * place.curve.at(last).gpu
        assert found[truth.number, place.node.name] == pytest.approx(worked, abs=1e-3), truth.number
    store.close()


def _before(one: Observed, node: str, card: int, end: float) -> bool:
    """Whether somebody left one of its cards since the sample before its first."""
    mine = node == one.place.node.name and card in one.place.gpus
    return mine and one.truth.start - EVERY < end <= one.truth.start + EVERY and end != one.truth.end


def test_memory_peaks_are_those_of_the_kernel(cluster: Cluster, store: Store) -> None:
    peaks: dict[tuple[str, str], float] = {}
    for job in documents(store):
        for part in job["parts"]:
            if part["source"] == "cgroup":
                peaks[job["id"], part["node"]] = part["group_peak"]
    lives = Counter(truth.number for truth in cluster.truths)
    for truth, place, last in observed(cluster):
        if truth.scheduler == "slurm" and lives[truth.number] == 1:
            assert peaks[truth.number, place.node.name] == int(place.curve.at(last).peak)


def test_jobs_carry_the_names_their_allocation_says(cluster: Cluster, store: Store) -> None:
    truths = {one.truth.number: one.truth for one in observed(cluster) if one.truth.scheduler == "slurm"}
    jobs = [job for job in documents(store) if job["scheduler"] == "slurm" and job["parts"]]
    for job in jobs:
        truth = truths[job["id"]]
        said = (job["owner"], job["account"], job["partition"], job["name"])
        assert said == (truth.user.name, truth.user.account, truth.draft.partition, truth.draft.name)


def test_a_batch_job_begins_when_it_did(cluster: Cluster, store: Store) -> None:
    begins: dict[str, set[float]] = defaultdict(set)
    for one in observed(cluster):
        begins[one.truth.number].add(one.truth.start)
    for job in documents(store):
        if job["scheduler"] == "slurm" and job["parts"]:
            assert min(abs(job["started"] - begin) for begin in begins[job["id"]]) < 0.1


def test_every_run_is_one_document_with_its_own_samples(cluster: Cluster, store: Store) -> None:
    # Which run a sample is of, the scheduler may tell only later.
    recount(store)
    known = {(t.number, round(t.submit, 3)): t for t in cluster.plan.truths if t.scheduler == "slurm"}
    jobs = [job for job in documents(store) if job["scheduler"] == "slurm"]
    assert [job["key"] for job in jobs if not job["batch"]] == [], "nothing was only sampled"
    runs = [(job["id"], round(job["batch"]["submit"], 3)) for job in jobs]
    assert len(set(runs)) == len(runs)
    used: dict[tuple[str, float, str], float] = {}
    for truth, place, last in observed(cluster):
        if truth.scheduler == "slurm":
            used[truth.number, round(truth.submit, 3), place.node.name] = place.curve.at(last).cpu
    for run, job in zip(runs, jobs, strict=True):
        truth, batch = known[run], job["batch"]
        assert (job["owner"], job["account"]) == (truth.user.name, truth.user.account)
        if batch.get("ended") is not None:
            assert (batch["state"], batch["ended"]) == (truth.ending.state, pytest.approx(truth.end, abs=1e-3))
        for part in job["parts"]:
            if part["source"] == "cgroup":
                assert part["cpu_time"] == pytest.approx(used.pop((*run, part["node"])), rel=1e-6, abs=3 * MICRO)
    assert used == {}, "every sample is some document's"
