"""Findings against the truth: every planted misfit is found, and nothing that is healthy is told of."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.analyse.judge import judge
from jobsight.analyse.keeper import open_store
from jobsight.analyse.recount import recount
from jobsight.analyse.scene import scene
from jobsight.analyse.slice import roll
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.draft import Misfit
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import ALL, Sampling
from jobsight.simulate.score import Score, scores, table

HOUR = 3600.0
SPARED = ("network", "agent", "disk", "memory")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Score]]:
    collectors = tuple(name for name in ALL if name not in SPARED)
    cluster = Cluster(Wish(seed=1, nodes=26, days=1.0), Sampling(300.0, collectors))
    path: Path = tmp_path_factory.mktemp("truth")
    store = open_store(str(path / "store"))
    fill(cluster, store)
    recount(store)
    roll(store, cluster.plan.end + 2 * HOUR)
    seen = scene(store, cluster.plan.wish.begin, cluster.plan.end, cluster.plan.end)
    yield scores(cluster.plan, seen, judge(seen))
    store.close()


@pytest.mark.slow
def test_every_planted_misfit_is_found_and_nothing_healthy_is(scored: list[Score]) -> None:
    assert [one.code for one in scored] == sorted(Misfit)
    assert all(not one.missed and not one.wrong for one in scored), table(scored)


@pytest.mark.slow
def test_the_truth_has_nearly_every_misfit_in_it(scored: list[Score]) -> None:
    assert sum(one.planted > 0 for one in scored) >= len(Misfit) - 2


def test_a_score_counts_what_is_missed_and_what_is_wrong() -> None:
    one = Score("hog", planted=4, found=5, right=3, missed=("a",), wrong=("b", "c"))
    assert (one.precision, one.recall) == (0.6, 0.75)
    assert "| `hog` | 4 | 5 | 3 | 0.600 | 0.750 |" in table([one])
    nothing = Score("hog", 0, 0, 0, (), ())
    assert (nothing.precision, nothing.recall) == (None, None)
