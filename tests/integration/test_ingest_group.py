"""Servers that only take in, as members of one Kafka consumer group, writing into one PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_database
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.kafka import Kafka, broker, settings
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.integration.test_kafka import Node
from tests.integration.test_nothing_lost import get
from tests.integration.test_postgres import Start
from tests.store.contract import BOOT

pytestmark = pytest.mark.slow
GROUP = "pair"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with broker(tmp_path_factory.mktemp("kafka")) as made:
        yield made


def test_members_of_one_group_share_the_work_and_one_that_is_killed_costs_nothing(
    kept: Kafka, start: Start, cluster: Cluster, tmp_path: Path
) -> None:
    database = cluster.database()
    servers: dict[str, Program] = {}

    def begin(number: int) -> None:
        port = free_port()
        file = settings(
            tmp_path / f"serve{number}.yaml",
            store={"url": database, "path": str(tmp_path / f"store{number}")},
            serve={"kafka": {"brokers": [kept.address], "group": GROUP, "clusters": [GROUP]}},
        )
        url = f"http://127.0.0.1:{port}"
        servers[url] = start("serve", "--ingest-only", "--settings", file, "--listen", f"127.0.0.1:{port}")
        wait_until(lambda: answers(f"{url}/health"), 60, "the server answers")

    def digester() -> str | None:
        return next((url for url in servers if get(f"{url}/health")["digests"]), None)

    def goes_on() -> None:
        before, _ = kept.progress(GROUP, f"{GROUP}.")
        wait_until(lambda: kept.progress(GROUP, f"{GROUP}.")[0] > before + 100, 60, "more is stored and committed")

    nodes = [Node(f"n{number}", kept.address, GROUP, tmp_path) for number in range(3)]
    for node in nodes:
        node.start()
    for number in range(2):
        begin(number)
    wait_until(lambda: len([m for m in kept.members(GROUP) if m]) == 2, 60, "both have partitions")
    for number in range(2, 4):
        goes_on()
        wait_until(digester, 60, "one of them digests")
        killed = digester()
        assert killed
        servers.pop(killed).kill()
        wait_until(digester, 60, "the other digests")
        goes_on()
        begin(number)
    for node in nodes:
        node.finish()
    wait_until(lambda: kept.drained(GROUP, f"{GROUP}."), 60, "all is read")
    for program in servers.values():
        assert program.stop()[0] == 0
    store = open_database(database)
    store.digest()
    for node in nodes:
        times = store.query("SELECT time FROM process WHERE node = ? ORDER BY time", [node.node])
        assert [time for (time,) in times] == node.times
        assert store.query("SELECT sum(cpu_time) FROM usage WHERE node = ?", [node.node]) == [
            (pytest.approx(node.times[-1] - BOOT - 50),)
        ]
    assert store.query("SELECT count(*) FROM inbox") == [(0,)]
    store.close()
