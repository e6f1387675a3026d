"""Answers from PostgreSQL are those of the embedded store."""

from pathlib import Path

import msgspec
import pytest

from jobsight.analyse.answers import answers, scaled
from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.summary import summary
from jobsight.simulate.cluster import Cluster as Simulated
from jobsight.simulate.cluster import fill
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import Sampling
from jobsight.store.protocol import JobQuery
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414

NEEDED = ("hardware", "allocation", "process", "cgroup", "gpu", "slurmjob")


@pytest.mark.slow
@pytest.mark.parametrize("most", [4000, 50])
def test_both_engines_answer_alike(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("jobsight.analyse.track.MOST", most)
    here, there = open_database(cluster.database()), open_store(str(tmp_path / "store"))
    told = []
    for store in (here, there):
        simulated = Simulated(Wish(seed=3, nodes=14, days=0.06), Sampling(60.0, NEEDED))
        fill(simulated, store)
        now = simulated.plan.end
        found = sorted(store.jobs(JobQuery(limit=10_000), now), key=lambda job: str(job["key"]))
        told.append(
            [
                msgspec.to_builtins((answers(store, job, summary(job, now)), scaled(store, job, now, None)))
                for job in found
            ]
        )
        store.close()
    assert len(told[0]) > 20
    assert any(one[0]["cards"] for one in told[0])
    for one, other in zip(*told, strict=True):
        mine, theirs = flat(one), flat(other)
        assert mine.keys() == theirs.keys()
        for place, value in mine.items():
            near = pytest.approx(theirs[place], rel=1e-6) if isinstance(value, float) else theirs[place]
            assert value == near, place


def flat(value: object, path: str = "") -> dict[str, object]:
    """Every number and text by its place."""
    if isinstance(value, dict):
        return {k: v for name, inner in value.items() for k, v in flat(inner, f"{path}.{name}").items()}
    if isinstance(value, list | tuple):
        return {k: v for place, inner in enumerate(value) for k, v in flat(inner, f"{path}.{place}").items()}
    return {path: value}
