"""Cards of a job whose number counts on one machine only."""

import time
from pathlib import Path

from jobsight.analyse.keeper import open_store
from jobsight.show.access import Viewer
from jobsight.show.views import View
from jobsight.store.protocol import JobQuery
from tests.store.contract import _line, process_line


def test_the_card_of_another_machines_session_of_that_number_is_not_shown(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    now = time.time()
    for node, owner in (("n1", "ada"), ("n2", "bob")):
        card = {
            "uuid": [f"GPU-{owner}"], "vendor": ["nvidia"], "scheduler": ["session"], "job": ["77"],
            "held_by": ["process"], "utilization": [0.5],
        }  # fmt: skip
        for time_ in (now - 20, now - 10):
            begun = time_ - 1794700000.0 - 50
            lines = [
                process_line(time_, node=node, scheduler="session", job="77", owner=owner, started=begun),
                _line("gpu", time_, card, node),
            ]
            store.append(lines).result(10)
    store.digest()
    view = View(store, Viewer("ada"))
    (job,) = view.jobs(JobQuery(), now)
    found = view.job(job["key"], now)
    assert found is not None
    assert [(card["node"], card["uuid"]) for card in found["answers"]["cards"]] == [("n1", "GPU-ada")]
    store.close()
