"""Answers about the jobs of a simulated cluster, through real messages and the real store, set against the truth."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobsight.analyse.answers import Answers, answers, scaled
from jobsight.analyse.keeper import open_store
from jobsight.analyse.rightsize import Request
from jobsight.analyse.summary import Summary, summary
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.draft import Misfit
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import Sampling
from jobsight.simulate.truth import Truth
from jobsight.simulate.work import cut
from jobsight.store.protocol import JobQuery, Store

pytestmark = pytest.mark.slow

EVERY = 60.0
NEEDED = ("hardware", "allocation", "process", "cgroup", "gpu", "slurmjob", "slurmqueue")


class Answered(NamedTuple):
    truth: Truth
    figures: Summary
    answers: Answers


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster(Wish(seed=3, nodes=14, days=0.45, scalings=2), Sampling(EVERY, NEEDED))


@pytest.fixture(scope="module")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path: Path = tmp_path_factory.mktemp("answered")
    opened = open_store(str(path / "store"))
    fill(cluster, opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def found(cluster: Cluster, store: Store) -> list[Answered]:
    """Jobs that were started once, with what is answered about them."""
    now = cluster.plan.end
    lives = Counter((truth.scheduler, truth.number) for truth in cluster.truths)
    known = {(t.scheduler, t.number): t for t in cluster.truths if lives[t.scheduler, t.number] == 1}
    made = []
    for document in store.jobs(JobQuery(limit=100_000), now):
        truth = known.get((document["scheduler"], document["id"]))
        figures = summary(document, now)
        if truth is not None and document["parts"]:
            made.append(Answered(truth, figures, answers(store, document, figures)))
    assert len(made) > 100
    return made


def suffices(truth: Truth, asked: Request) -> bool:
    """Whether the job would have come through with what is suggested, and as quickly."""
    nodes, memory, limit = (int(asked.value(name) or 0) for name in ("nodes", "mem", "time"))
    cores = asked.value("cpus-per-task") or asked.value("ntasks-per-node") or 0
    phases = cut(truth.draft.phases, truth.end - truth.start)
    shares = truth.draft.shares or (1.0,) * len(truth.places)
    # Where nodes are left out the others do their work.
    most = sum(shares) / nodes if nodes < len(truth.places) else max(shares)
    took = sum(phase.seconds * max(1.0, phase.cores * most / cores) for phase in phases)
    peaks = list(truth.memory_peaks().values())
    held = max(peaks) if nodes == len(peaks) else sum(peaks) / nodes
    cards = truth.draft.gpus if any(phase.gpu for phase in phases) else 0
    quick = took <= min(limit, 1.03 * (truth.end - truth.start))
    return quick and memory >= held and (asked.value("gpus-per-node") or 0) >= cards


def test_what_is_suggested_would_have_sufficed(found: list[Answered]) -> None:
    given = [one for one in found if one.answers.request.sure and one.answers.request.lines]
    enough = [one for one in given if suffices(one.truth, one.answers.request)]
    assert len(given) > 80
    assert len(enough) >= 0.99 * len(given)


def test_whoever_asked_for_far_too_much_is_told_to_ask_for_less(found: list[Answered]) -> None:
    for one in found:
        asked, draft = one.answers.request, one.truth.draft
        if asked.sure and Misfit.SPARE_MEMORY in draft.planted:
            assert (asked.value("mem") or 0) < 0.3 * draft.memory
        if asked.sure and draft.planted == (Misfit.IDLE_CORES,) and not draft.law:
            assert (asked.value("cpus-per-task") or 0) <= 2


def test_why_a_job_ended_is_what_ended_it(found: list[Answered], cluster: Cluster) -> None:
    kinds = {"COMPLETED": "completed", "TIMEOUT": "time limit", "OUT_OF_MEMORY": "out of memory",
             "CANCELLED": "cancelled", "NODE_FAIL": "node failure"}  # fmt: skip
    looked = 0
    for truth, _, answered in found:
        if truth.scheduler == "slurm" and truth.end < cluster.plan.end - 2 * EVERY:
            looked += 1
            failed = "signal" if truth.ending.signal else "failed"
            assert answered.ending.kind == kinds.get(truth.ending.state, failed), truth.number
    assert looked > 60


def test_what_binds_is_what_was_planted(found: list[Answered]) -> None:
    expected: dict[Any, str] = {
        Misfit.MEMORY_EDGE: "memory", Misfit.IMBALANCE: "busiest node", Misfit.HUNG: "waiting",
    }  # fmt: skip
    for truth, figures, answered in found:
        whole = figures.elapsed > 0.9 * (truth.end - truth.start) and answered.ending.kind != "running"
        for misfit in truth.planted:
            if misfit in expected and whole and figures.elapsed > 3600 and (figures.coverage or 0) > 0.9:
                assert answered.binding.resource == expected[misfit], truth.number


def test_the_law_of_a_series_is_found_from_any_of_its_runs(
    store: Store, cluster: Cluster, found: list[Answered]
) -> None:
    now, seen = cluster.plan.end, set()
    for truth, figures, _ in found:
        law = truth.draft.law
        if law is None or law.series in seen:
            continue
        document = store.job(figures.key)
        assert document is not None
        told = scaled(store, document, now, None)
        if told.law is not None:
            seen.add(law.series)
            assert told.law.serial.low <= law.serial <= told.law.serial.high
            assert told.law.talk.low <= law.talk <= told.law.talk.high
    assert seen


def test_jobs_without_a_batch_system_are_answered_too(found: list[Answered]) -> None:
    sessions = [one for one in found if one.truth.scheduler == "session"]
    assert len(sessions) > 5
    assert all(one.answers.verdict for one in sessions)
    assert {one.answers.ending.kind for one in sessions} <= {"unknown", "running", "silent"}
