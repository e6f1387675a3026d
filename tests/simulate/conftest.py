"""A small simulated cluster, made once and loaded once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.simulate.cluster import Cluster, fill
from jobsight.simulate.outage import Faults, Outage
from jobsight.simulate.plan import BEGIN, Wish
from jobsight.simulate.sampler import Sampling
from jobsight.store.protocol import Store

EVERY = 300.0
WISH = Wish(seed=3, nodes=14, days=0.25, faults=Faults(outages=(Outage("c1-2", BEGIN + 9000, BEGIN + 11000),)))


@pytest.fixture(scope="package")
def cluster() -> Cluster:
    """To be asked for its truth; its messages went into `store`."""
    return Cluster(WISH, Sampling(every=EVERY))


@pytest.fixture(scope="package")
def store(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path: Path = tmp_path_factory.mktemp("simulated")
    opened = open_store(str(path / "store"))
    assert fill(cluster, opened) > 0
    yield opened
    opened.close()
