"""Work beside the scheduler on its nodes."""

import json
from pathlib import Path
from typing import Any

from jobsight.analyse.keeper import open_store
from jobsight.analyse.stray import batch_nodes, strays
from jobsight.schema.units import Seconds
from jobsight.schema.wire import instant
from jobsight.serving import Stray

NODES = {("fox", "n1"), ("fox", "n2")}


def job(**changes: Any) -> dict[str, Any]:
    plain = {
        "scheduler": "session", "cluster": "fox", "id": "100", "number": "", "owner": "alice", "nodes": ["n1"],
        "command": "python3", "commands": {"bash": 1.0, "python3": 50.0}, "elapsed": 900.0, "cpu_time": 51.0,
    }  # fmt: skip
    return {**plain, **changes}


def found(*jobs: dict[str, Any], options: Stray | None = None) -> list[str]:
    return [one["id"] for one in strays(jobs, NODES, options or Stray())]


def test_a_session_on_a_batch_node_is_a_stray_and_elsewhere_it_is_not() -> None:
    assert found(job()) == ["100"]
    assert found(job(nodes=["n1.example.org"])) == ["100"]
    assert found(job(nodes=["login1"])) == []
    assert found(job(cluster="other")) == []
    assert found(job(scheduler="slurm")) == []


def test_who_looks_around_for_a_while_is_none() -> None:
    assert found(job(elapsed=299.0)) == []
    assert found(job(elapsed=60.0), options=Stray(grace=Seconds(30))) == ["100"]


def test_exempt_users_commands_and_nodes_are_none() -> None:
    assert found(job(owner="root")) == []
    assert found(job(owner="svc-backup"), options=Stray(users=("svc-*",))) == []
    assert found(job(nodes=["n2"]), options=Stray(nodes=("n2",))) == []
    assert found(job(commands={"sshd": 1.0, "systemd": 0.1})) == []
    assert found(job(commands={"sshd": 1.0, "miner": 900.0})) == ["100"], "one of them is not exempt"


def test_it_is_said_whether_the_user_has_a_job_there() -> None:
    batch = job(scheduler="slurm", id="7", nodes=["n1", "n2"])
    (mine,) = strays([job(), batch], NODES, Stray())
    (theirs,) = strays([job(owner="bob"), batch], NODES, Stray())
    assert (mine["beside"], theirs["beside"]) == (["7"], [])


def test_those_that_use_the_most_come_first() -> None:
    assert found(job(id="1", cpu_time=None), job(id="2", cpu_time=9.0), job(id="3", cpu_time=90.0)) == ["3", "2", "1"]


def test_batch_nodes_are_those_the_scheduler_told_of_lately(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    rows = {"nodes": ["n[1-2]", "broken["], "node_count": [2, 1], "state": ["IDLE", "IDLE"]}
    message = {
        "schema": 1, "cluster": "fox", "node": "ctl", "boot": "b", "collector": "slurmnode", "status": "ok",
        "time": instant(1794700800.0), "uptime": 5.0, "every": 60, "seconds": 0.1, "rows": rows,
    }  # fmt: skip
    store.append([json.dumps(message).encode()]).result(10)
    assert store.digest() == 1
    assert batch_nodes(store, 1794700900.0) == NODES
    assert batch_nodes(store, 1794700900.0 + 2 * 86400) == set()
    store.close()
