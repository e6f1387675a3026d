"""The whole on PostgreSQL: the same pages, the command line beside the server, and nothing lost whatever falls."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import pytest

from jobsight.analyse.keeper import open_database, open_store
from jobsight.show import views
from jobsight.store.protocol import JobQuery
from tests.conftest import Program, answers, free_port, wait_until
from tests.integration.postgres import Cluster
from tests.integration.postgres import cluster as cluster  # noqa: PLC0414
from tests.integration.test_nothing_lost import Sender, get, post
from tests.store.contract import BOOT, process_line
from tests.store.test_postgres import messages

Start = Callable[..., Program]


def serve(start: Start, tmp_path: Path, database: str, port: int) -> tuple[Program, str]:
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps({"store": {"url": database}}))
    program = start("serve", "--listen", f"127.0.0.1:{port}", "--settings", str(settings))
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(f"{url}/api/nodes") or program.process.poll() is not None, what="the server answers")
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
        running = sorted(views.running(store, now), key=lambda job: str(job["key"]))
        found.append(([views.job(store, job["key"], now) for job in every], running, views.nodes(store, now)))
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
    wait_until(lambda: get(f"{url}/api/jobs"), what="the job is there")
    code, told = start("jobs", "--store", database, "--user", "all", "--json").finish()
    assert code == 0, told
    assert [job["id"] for job in json.loads(told)] == ["100"]
    cluster.stop(signal.SIGQUIT)
    try:
        with pytest.raises(HTTPError) as caught:
            get(f"{url}/api/jobs")
        assert caught.value.code == 503
        assert "cannot reach the database store" in json.load(caught.value)["detail"]
        caught.value.close()
    finally:
        cluster.start()
    assert len(get(f"{url}/api/jobs")) == 1
    code, told = program.stop()
    assert code == 0
    assert "(PostgreSQL " in told
    assert "rows are kept in " in told


@pytest.mark.slow
def test_server_and_database_that_fall_again_and_again_lose_nothing_and_double_nothing(
    start: Start, cluster: Cluster, tmp_path: Path
) -> None:
    database, port = cluster.database(), free_port()
    program, url = serve(start, tmp_path, database, port)
    senders = [Sender(url, f"n{i}") for i in range(3)]
    for sender in senders:
        sender.start()
    for turn in range(6):
        before = sum(len(sender.acknowledged) for sender in senders)
        wait_until(lambda before=before: sum(len(s.acknowledged) for s in senders) > before + 300)  # type: ignore[misc]
        if turn % 2:
            program.kill()
            program, _ = serve(start, tmp_path, database, port)
        else:
            cluster.stop(signal.SIGQUIT)
            cluster.start()
    for sender in senders:
        sender.stopping = True
    for sender in senders:
        sender.join()
    program.stop()
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
