"""Speed-up laws, fitted to times whose law is known."""

from random import Random

import pytest

from jobsight.analyse.law import Timing, fit, knee, useful
from jobsight.simulate.draft import Law as Truth
from jobsight.simulate.series import scaling
from jobsight.simulate.site import User

CORES = (1, 2, 4, 8, 16, 32, 64)


def test_a_law_without_noise_is_found_exactly() -> None:
    truth = Truth("s", "usl", 7200.0, 0.03, 0.0004, 0.0)
    law = fit([Timing(cores, truth.seconds(cores), 0.0) for cores in CORES])
    assert law is not None
    assert law.serial.value == pytest.approx(0.03, rel=1e-3)
    assert law.talk.value == pytest.approx(0.0004, rel=1e-3)
    assert law.one.value == pytest.approx(7200, rel=1e-3)
    assert law.kind == "usl"
    assert law.fastest is not None
    assert law.fastest.value == pytest.approx(((1 - 0.03) / 0.0004) ** 0.5, abs=1)
    assert law.seconds(16) == pytest.approx(truth.seconds(16), rel=1e-3)


@pytest.mark.parametrize("every", [0.0, 60.0])
def test_laws_of_simulated_series_lie_within_the_stated_intervals(every: float) -> None:
    """Told by the scheduler, to a second; or seen by samples, to a minute."""
    right = series = 0
    for number in range(60):
        chance = Random(number)
        drafts = scaling(chance, User("u", 1, "a", "physics", 1.0), number)
        runs = []
        for draft in drafts:
            seconds = sum(phase.seconds for phase in draft.phases)
            seen = seconds - chance.random() * every
            runs.append(Timing(draft.cores, seen + every / 2, max(0.5, every / 12**0.5)))
        law, truth = fit(runs), drafts[0].law
        assert law is not None
        assert truth is not None
        series += 1
        serial = law.serial.low <= truth.serial <= law.serial.high
        right += serial and law.talk.low <= truth.talk <= law.talk.high
    assert right >= 0.9 * series


def test_too_few_runs_make_no_law() -> None:
    assert fit([Timing(cores, 3600 / cores, 0.5) for cores in (1, 2, 4)]) is None
    assert fit([Timing(4, 900.0, 0.5)] * 9) is None


def test_half_of_the_power_is_used_where_the_law_says_so() -> None:
    assert useful(0.05, 0.0) == 21
    count = useful(0.02, 0.001)
    assert 1 + 0.02 * (count - 1) + 0.001 * count * (count - 1) <= 2
    assert 1 + 0.02 * count + 0.001 * (count + 1) * count > 2


def test_the_knee_is_where_speed_up_times_efficiency_is_highest() -> None:
    def worth(cores: int) -> float:
        return cores / (1 + 0.02 * (cores - 1) + 0.0005 * cores * (cores - 1)) ** 2

    assert abs(knee(0.02, 0.0005) - max(range(1, 500), key=worth)) <= 1
