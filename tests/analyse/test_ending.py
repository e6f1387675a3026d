"""Why a job ended."""

from typing import Any

import pytest

from jobsight.analyse.batch import Batch
from jobsight.analyse.ending import ending
from tests.analyse.figures import job, part


def told(state: str, **more: Any) -> Batch:
    return Batch(4000.0, "7", state, uid=1000, start=0.0, ended=3600.0, **more)


@pytest.mark.parametrize(
    ("batch", "kind", "word"),
    [
        (told("COMPLETED", exit_code=0), "completed", "well"),
        (told("FAILED", exit_code=3), "failed", "exit code 3"),
        (told("FAILED", exit_code=0, exit_signal=11), "signal", "SIGSEGV"),
        (told("FAILED", exit_code=139), "signal", "SIGSEGV"),
        (told("FAILED", exit_signal=200), "signal", "200"),
        (told("OUT_OF_MEMORY", exit_signal=125), "out of memory", "64 GiB"),
        (told("TIMEOUT", time_limit=3600.0), "time limit", "1:00:00"),
        (told("NODE_FAIL"), "node failure", "node"),
        (told("PREEMPTED"), "preempted", "another job"),
        (told("CANCELLED", cancelled_by=1000), "cancelled", "by its user"),
        (told("CANCELLED", cancelled_by=0), "cancelled", "cancelled."),
    ],
    ids=lambda value: value.state if isinstance(value, Batch) else None,
)
def test_the_schedulers_word_comes_first(batch: Batch, kind: str, word: str) -> None:
    found = ending(job(batch=batch))
    assert found.kind == kind
    assert word in found.sentence
    assert found.known
    assert found.good == (kind == "completed")


def test_a_kill_for_want_of_memory_is_seen_without_a_scheduler() -> None:
    found = ending(job(part(oom_kills=2)))
    assert (found.kind, found.known, found.good) == ("out of memory", False, False)


def test_a_program_killed_for_want_of_memory_is_not_taken_for_one_that_failed() -> None:
    assert ending(job(part(oom_kills=1), batch=told("FAILED", exit_code=137))).kind == "out of memory"


def test_what_runs_and_what_waits_has_not_ended() -> None:
    assert ending(job(state="running")).kind == "running"
    assert ending(job(state="pending")).kind == "pending"
    assert not ending(job(state="running")).good


def test_of_a_silent_node_nobody_knows_how_the_job_ended() -> None:
    found = ending(job(state="silent"))
    assert (found.kind, found.good) == ("silent", False)
    assert "not known" in found.sentence


def test_processes_that_are_gone_before_the_scheduler_says_so_make_no_good_end() -> None:
    found = ending(job(batch=Batch(3000.0, "7", "RUNNING", start=0.0)))
    assert (found.kind, found.good) == ("unknown", False)
