"""The plan: the same from the same seed, possible on its machines, and with everything in it that it promises."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from jobsight.simulate.cluster import Cluster
from jobsight.simulate.draft import Misfit
from jobsight.simulate.plan import Plan, Wish, plan
from jobsight.simulate.scheduler import USABLE
from jobsight.simulate.truth import Truth
from tests.simulate.conftest import WISH


@pytest.fixture(scope="module")
def day() -> Plan:
    return plan(Wish(seed=11, nodes=32, days=1.5))


def story(found: Plan) -> list[tuple[object, ...]]:
    return [(t.number, t.user.name, t.kind, t.submit, t.start, t.end, t.nodes, t.ending.state) for t in found.truths]


def batch(found: Plan) -> list[Truth]:
    return [truth for truth in found.truths if truth.scheduler == "slurm" and truth.started]


def test_one_seed_gives_one_story_and_another_another(cluster: Cluster) -> None:
    assert story(plan(WISH)) == story(cluster.plan)
    assert story(plan(WISH._replace(seed=4))) != story(cluster.plan)


def test_no_core_card_or_memory_is_given_to_two_jobs_at_once(day: Plan) -> None:
    holders: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for truth in batch(day):
        for place in truth.places:
            held = [("core", core) for core in place.cores] + [("card", card) for card in place.gpus]
            for kind, number in held:
                holders[place.node.name, kind, number].append((truth.start, truth.end))
            memory = truth.draft.memory
            changes[place.node.name] += [(truth.start, memory), (truth.end, -memory)]
    for spans in holders.values():
        ordered = sorted(spans)
        assert all(before[1] <= after[0] for before, after in pairwise(ordered))
    most = {node.name: USABLE * node.make.memory for node in day.site.nodes}
    for node, steps in changes.items():
        held_now = 0
        for _, change in sorted(steps):
            held_now += change
            assert held_now <= most[node]


def test_jobs_get_what_they_ask_for_and_never_start_before_they_are_submitted(day: Plan) -> None:
    for truth in batch(day):
        assert len(truth.places) == truth.draft.nodes
        assert all(len(place.cores) == truth.draft.cores for place in truth.places)
        assert all(place.node.make.partition == truth.draft.partition for place in truth.places)
        assert truth.submit < truth.start < truth.end
        assert truth.end - truth.start <= truth.draft.limit


def test_some_jobs_wait(day: Plan) -> None:
    waits = sorted(truth.start - truth.submit for truth in batch(day))
    assert waits[0] <= 1.0
    assert waits[-1] > 1800.0


def test_every_misfit_and_every_way_to_end_is_there(day: Plan) -> None:
    planted = Counter(misfit for truth in day.seen() for misfit in truth.planted)
    assert set(planted) == set(Misfit)
    states = {truth.ending.state for truth in day.seen()}
    assert states >= {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL"}
    assert any(truth.ending.signal == 11 for truth in day.seen())
    assert any(truth.restarts for truth in batch(day))
    assert any(truth.array for truth in batch(day))


def test_healthy_jobs_keep_what_healthy_promises(day: Plan) -> None:
    healthy = [truth for truth in batch(day) if truth.healthy and truth.kind != "scaling"]
    assert len(healthy) > 200
    for truth in healthy:
        assert 0.8 <= truth.efficiency <= 1.0
        assert all(0.5 <= peak / truth.draft.memory <= 0.82 for peak in truth.memory_peaks().values())
        assert (truth.end - truth.start) / truth.draft.limit >= 1 / 3


def test_misfits_are_what_they_are_called(day: Plan) -> None:
    ended = [truth for truth in batch(day) if truth.ending.state in ("COMPLETED", "TIMEOUT")]
    by = {m: [truth for truth in ended if m in truth.planted] for m in Misfit}
    assert all(truth.gpu_seconds == 0 and truth.draft.gpus for truth in by[Misfit.IDLE_GPU])
    assert all(truth.efficiency < 0.5 for truth in by[Misfit.IDLE_CORES])
    assert all(max(t.memory_peaks().values()) < 0.2 * t.draft.memory for t in by[Misfit.SPARE_MEMORY])
    assert all(max(t.memory_peaks().values()) > 0.95 * t.draft.memory for t in by[Misfit.MEMORY_EDGE])
    assert all(truth.ending.state == "TIMEOUT" for truth in by[Misfit.SHORT_LIMIT])
    assert all(truth.end - truth.start < 0.1 * truth.draft.limit for truth in by[Misfit.LONG_LIMIT])
    assert all(truth.phases[-1].kind == "hung" for truth in by[Misfit.HUNG])


def test_the_same_hog_is_one_in_a_crowd_and_none_alone(day: Plan) -> None:
    crowded, quiet = sorted((t for t in day.truths if t.kind == "hog"), key=lambda truth: truth.nodes)
    assert crowded.planted == (Misfit.HOG, Misfit.RESPONSE)
    assert quiet.planted == ()
    assert crowded.cpu_time == pytest.approx(quiet.cpu_time)

    def others(hog: Truth) -> int:
        overlap = (t for t in day.truths if t.nodes == hog.nodes and t.start < hog.end and hog.start < t.end)
        return sum(1 for truth in overlap if truth is not hog)

    assert others(crowded) >= 3
    assert others(quiet) == 0


def test_phases_follow_each_other_from_start_to_end(day: Plan) -> None:
    for truth in batch(day):
        spans = truth.phases
        assert spans[0].begin == truth.start
        assert spans[-1].end == pytest.approx(truth.end)
        assert all(one.end == other.begin for one, other in pairwise(spans))


def test_scaling_series_follow_their_law_but_for_the_noise_it_states() -> None:
    found = plan(Wish(seed=5, nodes=32, days=2, scalings=6, sets=0))
    runs = [truth for truth in batch(found) if truth.draft.law]
    assert len({truth.draft.name for truth in runs}) == 6
    errors = []
    for truth in runs:
        law = truth.draft.law
        assert law is not None
        if truth.ending.state == "COMPLETED":
            errors.append((truth.end - truth.start) / law.seconds(truth.draft.cores) - 1)
    spread = (sum(error * error for error in errors) / len(errors)) ** 0.5
    assert 0.7 * 0.015 < spread < 1.3 * 0.015
    assert {truth.draft.law.kind for truth in runs if truth.draft.law} == {"amdahl", "usl"}
    assert {truth.draft.cores for truth in runs} == {1, 2, 4, 8, 16, 32, 64}


def test_nothing_runs_on_a_node_that_is_down(day: Plan) -> None:
    assert day.faults.outages
    for outage in day.faults.outages:
        for truth in day.truths:
            if outage.node in truth.nodes:
                assert truth.end <= outage.begin or truth.start >= outage.end


def test_a_cluster_of_too_few_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 6 nodes, got 3"):
        plan(Wish(nodes=3))
