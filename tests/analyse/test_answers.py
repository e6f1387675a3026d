"""Answers as a whole: the sentence, running jobs, jobs whose rows are gone, many rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobsight.analyse.answers import answers, sentence
from jobsight.analyse.batch import Batch
from jobsight.analyse.binding import Binding
from jobsight.analyse.ending import ending
from jobsight.analyse.keeper import open_store
from jobsight.analyse.slice import roll
from jobsight.analyse.summary import summary
from jobsight.analyse.track import MOST, track
from jobsight.store.embedded import Embedded
from jobsight.store.protocol import JobQuery
from tests.analyse.figures import job, part
from tests.store.contract import BOOT, _line, process_line

HOUR = 3600.0
BEGIN = BOOT - BOOT % HOUR + 2 * HOUR


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Embedded]:
    opened = open_store(str(tmp_path / "store"))
    yield opened
    opened.close()


def fill(store: Embedded, seconds: float, every: float, serial: float, *, ends: bool = True) -> dict[str, Any]:
    """A job that uses one core for a time and eight after that."""
    lines = []
    for turn in range(1, int(seconds / every) + 1):
        past = turn * every
        cpu = min(past, serial) + 8 * max(0.0, past - serial)
        lines.append(process_line(BEGIN + past, started=BEGIN - BOOT, cpu_user=cpu, job="5", session=5))
    if ends:
        lines.append(_line("process", BEGIN + seconds + every, {}, "n1"))
    store.append(lines).result(30)
    store.digest()
    (found,) = store.jobs(JobQuery(), BEGIN + seconds)
    return found


def test_a_running_job_is_answered_as_far_as_it_has_come(store: Embedded) -> None:
    found = fill(store, 1200, 10, 600, ends=False)
    told = answers(store, found, summary(found, BEGIN + 1201))
    assert told.ending.kind == "running"
    assert [round(phase.cores) for phase in told.phases] == [1, 8]
    assert told.phases[1].begin == pytest.approx(BEGIN + 600, abs=10)
    assert "still running" in told.request.refused
    assert told.verdict.startswith("Uses")


def test_when_the_rows_are_gone_their_means_of_five_minutes_answer(store: Embedded) -> None:
    found = fill(store, 4 * HOUR, 10, 2 * HOUR)
    now = BEGIN + 40 * HOUR
    before = answers(store, found, summary(found, now))
    roll(store, now)
    store.compact(now + 10 * 86400, least=1)
    store.forget(BEGIN + 30 * HOUR, ["usage", "process", "run"])
    assert store.query("SELECT count(*) FROM usage") == [(0,)]
    after = answers(store, found, summary(found, now))
    assert [round(phase.cores) for phase in after.phases] == [round(phase.cores) for phase in before.phases] == [1, 8]
    assert after.phases[1].begin == pytest.approx(before.phases[1].begin, abs=300)
    assert after.balance == before.balance
    assert after.script == before.script != []


def test_a_job_with_more_rows_than_an_answer_takes_is_added_up_by_the_store(
    store: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fill(store, 4 * HOUR, 10, 2 * HOUR)
    figures = summary(found, BEGIN + 5 * HOUR)
    assert len(track(store, figures, found["parts"])["n1"]) == 1440
    monkeypatch.setattr("jobsight.analyse.track.MOST", 100)
    few = track(store, figures, found["parts"])["n1"]
    assert len(few) <= 100
    used = sum(one.seconds * one.cores for one in few if one.cores is not None)
    assert used == pytest.approx(9 * 2 * HOUR, rel=1e-6)
    assert MOST > 100


def test_a_job_that_nobody_sampled_is_answered_with_what_its_scheduler_says(store: Embedded) -> None:
    figures = job(batch=Batch(1.0, "7", "COMPLETED", start=0.0, ended=10.0, exit_code=0))
    told = answers(store, {"parts": []}, figures)
    assert told.ending.kind == "completed"
    assert told.phases == []
    assert told.request.refused


def test_the_sentence_says_what_was_used_and_what_bound_it() -> None:
    figures = job()
    said = sentence(figures, ending(figures), Binding("one core", "One core binds: so it was.", "high"))
    assert said == "Used 4 of 8 cores and at most 32 GiB of 64 GiB of memory. One core binds: so it was."
    unsure = sentence(figures, ending(figures), Binding("one core", "One core binds: so it was.", "low"))
    assert "binds" not in unsure


def test_memory_that_ran_out_is_said_once() -> None:
    figures = job(part(oom_kills=1))
    assert sentence(figures, ending(figures), Binding("nothing", "", "high")).count("memory") == 2
