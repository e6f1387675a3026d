"""Phases: those that were planted are found, and no others."""

from itertools import pairwise
from random import Random

import pytest

from jobsight.analyse.phases import Phase, phases
from jobsight.analyse.track import Interval, Level, levels
from jobsight.simulate.plan import Wish, plan
from tests.analyse.figures import EVERY, observed

MB = 1e6


def course(*stretches: tuple[float, float, float]) -> list[Level]:
    """Seconds, cores and bytes read a second, sampled every minute: a sample may lie in two stretches."""
    ends, at = [], 0.0
    for seconds, cores, read in stretches:
        at += seconds
        ends.append((at, cores, read))
    found = []
    for number in range(int(at // EVERY)):
        begin, end = number * EVERY, (number + 1) * EVERY
        shares = [
            (min(end, stop) - max(begin, stop - stretch[0]), cores, read)
            for (stop, cores, read), stretch in zip(ends, stretches, strict=True)
            if min(end, stop) > max(begin, stop - stretch[0])
        ]
        used, moved = (sum(share[0] * share[n] for share in shares) / EVERY for n in (1, 2))
        found.append(Level(begin, end, used, moved, 0.0))
    return found


def kinds(found: list[Phase]) -> list[str]:
    return [phase.kind for phase in found]


def test_planted_phases_of_simulated_jobs_are_found_within_one_sample() -> None:
    looked = 0
    for truth in plan(Wish(seed=5, nodes=24, days=0.5)).truths:
        if truth.scheduler != "slurm" or not truth.started or truth.end - truth.start < 10 * EVERY:
            continue
        found = phases(levels(observed(truth, EVERY)), EVERY, truth.draft.cores * len(truth.places))
        cuts = [phase.begin for phase in found[1:]]
        for one, other in pairwise(truth.phases):
            # Three samples of each: two hold the borders.
            if min(one.end - one.begin, other.end - other.begin) >= 3 * EVERY:
                looked += 1
                assert any(abs(cut - one.end) <= EVERY for cut in cuts), (truth.number, one, found)
        for cut in cuts:
            assert any(abs(cut - one.end) <= EVERY for one in truth.phases), (truth.number, cut)
    assert looked > 100


def test_the_sample_in_which_a_change_lies_says_when_in_it_that_was() -> None:
    found = phases(course((1215, 1.0, 0.0), (2385, 16.0, 0.0)), EVERY, 16)
    assert kinds(found) == ["one core", "computing"]
    assert found[1].begin == pytest.approx(1215, abs=1)
    assert found[0].cores == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_has_no_phases(seed: int) -> None:
    chance = Random(seed)
    noisy = [Level(i * EVERY, (i + 1) * EVERY, max(0.0, chance.gauss(8, 1.5)), None, None) for i in range(300)]
    assert len(phases(noisy, EVERY, 16)) == 1


def test_a_job_that_reads_then_computes_then_waits_is_told_so() -> None:
    found = phases(course((600, 0.3, 200 * MB), (1800, 15.0, 0.0), (1200, 0.0, 0.0)), EVERY, 16)
    assert kinds(found) == ["reading", "computing", "waiting"]


def test_a_moments_dip_is_no_phase() -> None:
    assert len(phases(course((1800, 8.0, 0.0), (60, 0.0, 0.0), (1800, 8.0, 0.0)), EVERY, 8)) == 1


def test_what_was_not_observed_is_not_taken_for_a_phase() -> None:
    whole = course((3600, 8.0, 0.0))
    (found,) = phases(whole[:20] + whole[40:], EVERY, 8)
    assert found.cores == pytest.approx(8.0)


def test_nodes_that_sample_at_different_seconds_are_added_up() -> None:
    track = {
        name: [Interval(at + i * 60, at + (i + 1) * 60, 8.0, None, None) for i in range(30)]
        for name, at in (("n1", 0.0), ("n2", 31.0))
    }
    both = [level for level in levels(track) if 100 < level.start < 1700]
    assert {round(level.cores, 6) for level in both} == {16.0}


def test_nothing_observed_has_no_phases() -> None:
    assert phases([], EVERY, 8) == []
