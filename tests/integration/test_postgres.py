"""The whole on PostgreSQL: the same pages, the command line beside the server, and nothing lost whatever falls."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.show.views import View
from jobsight.store.protocol import JobQuery
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.integration.test_nothing_lost import Sender, get, post
from tests.store.contract import BOOT, process_line
from tests.store.test_postgres import messages

Start = Callable[..., Program]


def serve(start: Start, tmp_path: Path, database: str, port: int, *options: str) -> tuple[Program, str]:
    settings = tmp_path / f"settings-{port}.yaml"
    settings.write_text(json.dumps({"store": {"url": database, "path": str(tmp_path / f"store-{port}")}}))
    program = start("serve", "--listen", f"127.0.0.1:{port}", "--settings", str(settings), *options)
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/health") or program.process.poll() is not None, what="the server answers")
    assert program.process.poll() is None, program.process.communicate()[0]
    return program, url


def test_pages_show_the_same_from_both_engines(cluster: Cluster, tmp_path: Path) -> None:
    here, there = open_database(cluster.database()), open_store(str(tmp_path / "store"))
    now = BOOT + 400
    found = []
    for store in (here, there):
        store.append(messages()).result(10)
        store.digest()
        every = sorted(store.jobs(JobQuery(), now), key=lambda job: str(job["key"]))
        running = sorted(View(store).running(now), key=lambda job: str(job["key"]))
        found.append(([View(store).job(job["key"], now) for job in every], running, View(store).nodes(now)))
        store.close()
    assert found[0][1]
    assert found[0] == found[1]


def test_command_line_reads_the_database_while_the_server_runs(
    start: Start, cluster: Cluster, tmp_path: Path
) -> None:
    database = cluster.database()
    program, url = serve(start, tmp_path, database, free_port())
    now = time.time()
    assert post(url, process_line(now, started=now - BOOT - 30) + b"\n")["accepted"] == 1
    wait_until(lambda: get(f"{url}/api/v1/jobs"), what="the job is there")
    code, told = start("jobs", "--store", database, "--user", "all", "--json").finish()
    assert code == 0, told
    assert [job["id"] for job in json.loads(told)] == ["100"]
    assert get(f"{url}/health")["digests"]
    cluster.stop(signal.SIGQUIT)
    try:
        for path in ("/api/v1/jobs", "/health"):
            with pytest.raises(HTTPError) as caught:
                get(f"{url}{path}")
            assert caught.value.code == 503
            assert "cannot reach the database store" in json.load(caught.value)["detail"]
            caught.value.close()
    finally:
        cluster.start()
    assert len(get(f"{url}/api/v1/jobs")) == 1
    code, told = program.stop()
    assert code == 0
    assert "(PostgreSQL " in told
    assert "rows are kept in " in told


class Party:
    """Servers on one database, each on a port of its own."""

    def __init__(self, start: Start, tmp_path: Path, database: str) -> None:
        self._start, self._path, self._database = start, tmp_path, database
        self.servers: dict[str, tuple[Program, int, tuple[str, ...]]] = {}

    def add(self, *options: str) -> str:
        port = free_port()
        program, url = serve(self._start, self._path, self._database, port, *options)
        self.servers[url] = (program, port, options)
        return url

    def digester(self) -> str | None:
        """The address of the server that says it digests."""
        saying = [url for url in self.servers if get(f"{url}/health")["digests"]]
        assert len(saying) <= 1, "two servers digest"
        return saying[0] if saying else None

    def kill(self, url: str) -> None:
        program, port, options = self.servers.pop(url)
        program.kill()
        wait_until(self.digester, what="another server digests")
        # As systemd would.
        again, _ = serve(self._start, self._path, self._database, port, *options)
        self.servers[url] = (again, port, options)

    def stop(self) -> None:
        for program, _, _ in self.servers.values():
            assert program.stop()[0] == 0


def check_counted_once(database: str, senders: list[Sender]) -> None:
    store = open_database(database)
    store.digest()
    for sender in senders:
        times = [row[0] for row in store.query("SELECT time FROM process WHERE node = ?", [sender.node])]
        assert len(times) == len(set(times)), "a message was stored twice"
        assert sender.acknowledged <= set(times), "an acknowledged message is missing"
        assert store.query("SELECT count(*) FROM run WHERE node = ?", [sender.node]) == [(len(times),)]
        (total,) = store.query("SELECT sum(cpu_time) FROM usage WHERE node = ?", [sender.node])[0]
        assert total == pytest.approx(max(times) - BOOT - 50)
    assert store.query("SELECT count(*) FROM inbox") == [(0,)]
    store.close()


@pytest.mark.slow
def test_of_servers_that_take_in_one_digests_and_when_it_is_killed_another_goes_on(
    start: Start, cluster: Cluster, tmp_path: Path
) -> None:
    database = cluster.database()
    party = Party(start, tmp_path, database)
    intakes = [party.add("--ingest-only"), party.add("--ingest-only")]
    wait_until(party.digester, what="one of them digests")
    shown = party.add()
    assert party.digester() in intakes
    for url in intakes:
        for path in ("/", "/jobs", "/api/v1/jobs"):
            assert not answers(f"{url}{path}")
    assert answers(f"{shown}/jobs")
    senders = [Sender(url, f"n{number}") for number, url in enumerate(intakes)]
    for sender in senders:
        sender.start()
    killed = set()
    for _ in range(4):
        before = [len(sender.acknowledged) for sender in senders]
        wait_until(lambda before=before: all(len(s.acknowledged) > b + 100 for s, b in zip(senders, before)))  # type: ignore[misc]  # noqa: B905
        last = party.digester()
        assert last
        party.kill(last)
        killed.add(last)
    assert len(killed) > 1
    for sender in senders:
        sender.stopping = True
    for sender in senders:
        sender.join()
    # Whoever digests, the one that shows pages has it.
    wait_until(lambda: {job["id"] for job in get(f"{shown}/api/v1/jobs")} == {"100"}, what="jobs are shown")
    party.stop()
    check_counted_once(database, senders)


def test_server_that_only_takes_in_is_refused_without_a_database(start: Start, tmp_path: Path) -> None:
    code, told = start("serve", "--ingest-only", "--store", str(tmp_path / "store")).finish()
    assert code == 2
    assert "--ingest-only needs a database" in told
