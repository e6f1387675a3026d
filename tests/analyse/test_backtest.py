"""Thresholds that are tried over many days tell what a server with these thresholds then keeps."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.analyse.told import Chosen, Told
from jobsight.analyse.watch import Watch
from jobsight.schema.wire import instant

DAY = 86400.0
NOW = 1_794_700_800.0


def swarm(first: int, begins: float) -> list[dict[str, Any]]:
    """A hundred jobs of five minutes, one after the other."""
    return [
        {"scheduler": "slurm", "job": str(first + number), "owner": "ada", "account": "physics", "name": "tiny",
         "partition": "short", "state": "COMPLETED", "nodes": "n1", "submit": begins + 300.0 * number,
         "start": begins + 300.0 * number, "ended": begins + 300.0 * (number + 1), "elapsed": 300.0, "cpus": 8,
         "node_count": 1}
        for number in range(100)
    ]  # fmt: skip


def test_a_user_told_of_on_two_days_is_counted_as_often_as_is_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path / "store"))
    rows = [*swarm(1000, NOW - 6 * DAY), *swarm(2000, NOW - 2 * DAY)]
    message = {
        "schema": 1, "cluster": "fox", "node": "ctl", "boot": "b1", "collector": "slurmjob", "every": 60.0,
        "time": instant(NOW - 60), "uptime": 7 * DAY, "status": "ok", "seconds": 0.01,
        "rows": {name: [row[name] for row in rows] for name in rows[0]},
    }  # fmt: skip
    store.append([json.dumps(message).encode()]).result(30)
    store.digest()
    chosen = Chosen(NOW - 7 * DAY, NOW)
    told = Told(store, None, {"vampire": {"jobs": 500}})
    tested = told.backtest(chosen, ["vampire.jobs=100"], NOW)
    Watch({"vampire": {"jobs": 100}}).look(store, NOW)
    kept = [one for one in told.kept(chosen) if one["code"] == "vampire"]
    assert len(kept) == 2
    assert tested["counts"]["findings_after"] == len(kept)
    assert sorted(one["sentence"] for one in tested["added"]) == sorted(one["sentence"] for one in kept)
    # However far back is asked for, no more than that is looked at.
    monkeypatch.setattr("jobsight.analyse.told.LONGEST", 8 * DAY)
    assert told.backtest(chosen._replace(since=-1e15), ["vampire.jobs=100"], NOW)["counts"] == tested["counts"]
    store.close()
