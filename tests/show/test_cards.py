"""Cards of a job whose number counts on one machine only."""

import time
from pathlib import Path

import pytest

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
    # Of its first sample, too, that stands for one interval.
    assert (job["gpus"], job["gpu_time"]) == (1, 10.0)
    store.close()


def test_what_cards_did_is_drawn_and_how_evenly_they_worked_is_said(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    begin = 1794700000.0
    for turn, busy in enumerate([(0.0, 0.0), (9.0, 3.0), (18.0, 6.0)]):
        cards = {
            "uuid": ["GPU-a", "GPU-b"], "vendor": ["nvidia"] * 2, "scheduler": ["slurm"] * 2, "job": ["7"] * 2,
            "utilization": [0.9, 0.3], "busy": list(busy), "memory_used": [2**30, 2**31],
        }  # fmt: skip
        at = begin + 100 + 10 * turn
        worked = process_line(at, scheduler="slurm", job="7", owner="ada", started=95.0)
        store.append([worked, _line("gpu", at, cards, "n1")]).result(10)
    store.digest()
    (job,) = store.jobs(JobQuery(), begin + 200)
    found = View(store).job(job["key"], begin + 200)
    assert found is not None
    assert found["series"]["gpu"]["value"] == pytest.approx([1.2, 1.2, 1.2])
    assert found["series"]["gpus"]["value"] == [2, 2, 2]
    assert found["series"]["gpu_memory"]["value"] == [3 * 2**30] * 3
    assert found["summary"]["gpu_time"] == pytest.approx(1.2 * 25)
    assert found["answers"]["cards_imbalance"] == pytest.approx(1 - 0.6 / 0.9)
    store.close()
