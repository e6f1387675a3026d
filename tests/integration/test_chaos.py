"""Exactly once, whatever is killed: agents over HTTP and Kafka into both stores, while all of them fall by chance.

Every message that the agents produced is stored once: rows, sums, checksums of identities, and the jobs' CPU seconds
are those of the known truth. CHAOS_SECONDS=300 makes it long, CHAOS_SEED=N another one; a failure names both, and
what was going on is kept in the folder it names.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.ingest.quarantine import Quarantine
from jobsight.schema.wire import instant
from jobsight.store.protocol import JobQuery
from tests.integration import sender
from tests.integration.chaos import NODES, Rig
from tests.integration.kafka import Kafka, broker
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414

SECONDS = float(os.environ.get("CHAOS_SECONDS", "8"))
SEED = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))
LARGEST = 60_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 300)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with broker(tmp_path_factory.mktemp("kafka"), LARGEST) as made:
        yield made


def checksum(identities: Iterable[tuple[Any, ...]]) -> str:
    made = hashlib.sha256()
    for cluster_, node, boot, collector, at in sorted(identities):
        made.update(f"{cluster_} {node} {boot} {collector} {instant(at)}\n".encode())
    return made.hexdigest()


def verify(store: Any, produced: dict[str, sender.Steps]) -> dict[str, Any]:
    """The store against what was produced. A step of which nobody knows may be stored or not, but not twice."""
    runs = store.query("SELECT cluster, node, boot, collector, time FROM run")
    assert len(runs) == len(set(runs)), "stored twice"
    surely = {
        (sender.CLUSTER, node, sender.BOOT_ID, collector, sender.at(step))
        for node, steps in produced.items()
        for step in steps.done
        for collector in ("process", "load")
    }
    maybe = {
        (sender.CLUSTER, node, sender.BOOT_ID, collector, sender.at(step))
        for node, steps in produced.items()
        for step in steps.unsure
        for collector in ("process", "load")
    }
    held = set(runs)
    assert not surely - held, f"lost: {sorted(surely - held)[:5]} of {len(surely - held)}"
    assert held - surely <= maybe, f"from nowhere: {sorted(held - surely - maybe)[:5]}"
    assert checksum(runs) == checksum(surely | (held & maybe))
    steps = [(node, round(at - sender.BOOT - 100)) for _, node, _, collector, at in runs if collector == "process"]
    rows, cpu, memory = store.query("SELECT count(*), sum(cpu_user), sum(memory_anon) FROM process")[0]
    assert rows == 3 * len(steps)
    assert memory == sum(3 * (1000 + step) for _, step in steps)
    assert cpu == pytest.approx(sum(sum(sender.used(step).values()) for _, step in steps))
    loads = [round(at - sender.BOOT - 100) for _, _, _, collector, at in runs if collector == "load"]
    ((existing,),) = store.query("SELECT sum(existing) FROM load")
    assert existing == sum(loads)
    ((noise,),) = store.query("SELECT coalesce(sum(length(error)), 0) FROM run")
    assert noise == sum(len(sender.noise(step) or "") for step in loads)
    return {
        "messages": len(runs),
        "rows": rows + len(loads),
        "unsure": len(maybe),
        "of them stored": len(held & maybe),
    }


def jobs_are_true(store: Any, produced: dict[str, sender.Steps]) -> None:
    """Each job has used what its processes had counted when they were seen last."""
    for node, steps in produced.items():
        truth = sender.used(max(steps.done))
        jobs = store.jobs(JobQuery(node=node), sender.at(max(steps.done)))
        totals = {job["id"]: sum(part["cpu_time"] for part in job["parts"]) for job in jobs}
        assert totals == pytest.approx(truth), f"jobs of {node}"
        rows = dict(store.query("SELECT job_key, sum(cpu_time) FROM usage WHERE node = ? GROUP BY job_key", [node]))
        assert rows == pytest.approx({job["key"]: truth[job["id"]] for job in jobs}), f"rows of {node}"


@pytest.mark.parametrize("kind", ["embedded", "postgres"])
@pytest.mark.parametrize("way", ["http", "kafka"])
def test_nothing_is_lost_and_nothing_counts_twice(
    way: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    own: Kafka | None = request.getfixturevalue("kept") if way == "kafka" else None
    database: Cluster | None = request.getfixturevalue("cluster") if kind == "postgres" else None
    folder = tmp_path / f"{way}-{kind}"
    folder.mkdir()
    rig = Rig(folder, own, database, SEED)
    told = f"CHAOS_SEED={SEED} CHAOS_SECONDS={SECONDS:g}, evidence in {folder}"
    print(told)
    try:
        rig.tend()
        rig.storm(SECONDS)
        rig.settle()
    finally:
        rig.stop()
        print(f"{told}; fell: {rig.falls}")
    produced = sender.read(folder / "journal")
    assert set(produced) == set(NODES), told
    store = open_database(rig.store) if database else open_store(rig.store)
    try:
        store.digest()
        found = verify(store, produced)
        jobs_are_true(store, produced)
    finally:
        store.close()
    print(f"{way} {kind}: fell {rig.falls}; {found}")
    assert Quarantine(str(folder / "store" / "quarantine")).held() == 0, told
