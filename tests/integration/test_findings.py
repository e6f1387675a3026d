"""The same findings from the embedded store and from PostgreSQL, on the same simulated cluster."""

from pathlib import Path

import pytest

from jobsight.analyse.judge import judge
from jobsight.analyse.keeper import DERIVED, Keeper, open_store
from jobsight.analyse.recount import recount
from jobsight.analyse.scene import scene
from jobsight.analyse.slice import roll
from jobsight.analyse.told import Chosen, Told
from jobsight.analyse.watch import Watch
from jobsight.simulate import cluster as simulated
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import ALL, Sampling
from jobsight.store.postgres import Postgres
from jobsight.store.protocol import Store
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414

SPARED = ("network", "agent", "disk", "memory")
WISH = Wish(seed=2, nodes=14, days=0.4)


def found(store: Store) -> list[tuple[str, str, str]]:
    """Of the cluster, stored anew; also what a server would have kept of it."""
    made = simulated.Cluster(WISH, Sampling(600.0, tuple(name for name in ALL if name not in SPARED)))
    simulated.fill(made, store)
    end = made.plan.end
    recount(store)
    roll(store, end + 7200)
    told = judge(scene(store, WISH.begin, end, end))
    assert Watch({}).look(store, end) > 0
    kept = Told(store, None, {}).kept(Chosen(WISH.begin, end))
    assert {one["id"] for one in kept} == {one.id for one in told}
    return sorted((one.id, one.code, one.sentence) for one in told)


@pytest.mark.slow
def test_both_stores_find_the_same(cluster: Cluster, tmp_path: Path) -> None:
    embedded = open_store(str(tmp_path / "store"))
    database = Postgres(cluster.database(), Keeper(), DERIVED, lambda: WISH.begin)
    try:
        ours, theirs = found(embedded), found(database)
    finally:
        embedded.close()
        database.close()
    assert len(ours) > 5
    assert ours == theirs
