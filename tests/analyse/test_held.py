"""Cards counted into the jobs that hold them, with the truth worked out by hand."""

from typing import Any

import msgspec
import pytest

from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger, Stamped
from jobsight.analyse.summary import Summary, summary
from jobsight.ingest.accept import Accepted

Cluster = Any
GIB = 2**30


def taken(cluster: Cluster, *messages: Accepted) -> tuple[list[Stamped], dict[str, Summary]]:
    """Rows of cards, and summaries by id."""
    ledger, rows = Ledger(cluster.nothing()), []
    jobs: dict[str, Job] = {}
    for message in messages:
        ledger.take(message)
        found, changed = ledger.emptied()
        rows += [row for row in found if row.usage.source == "gpu"]
        jobs |= {job.id: job for job in changed}
    now = max(message.time for message in messages)
    return rows, {name: summary(msgspec.to_builtins(job), now) for name, job in jobs.items()}


def card(busy: float | None, job: str | None = "7", uuid: str = "GPU-a", **more: Any) -> dict[str, Any]:
    held = {"scheduler": "slurm", "job": job} if job else {}
    return {"uuid": uuid, "busy": busy, "memory_used": GIB, **held, **more}


def test_time_in_which_cards_computed_is_by_their_own_count(cluster: Cluster) -> None:
    _, jobs = taken(
        cluster,
        cluster.groups(100, {"cpu_time": 0.0}),
        cluster.cards(100, card(50.0), card(0.0, uuid="GPU-b")),
        cluster.groups(110, {"cpu_time": 1.0}),
        cluster.cards(110, card(56.0), card(0.0, uuid="GPU-b", memory_used=3 * GIB)),
    )
    job = jobs["7"]
    assert (job.gpus, job.gpu_time, job.gpu_held, job.gpu_memory_peak) == (2, 6.0, 20.0, 4 * GIB)
    used = job.reserved["gpus"]
    assert used.given == 2
    assert used.used == pytest.approx(0.6)
    # What the control group counted is not mixed with it.
    assert (job.source, job.cpu_time) == ("cgroup", 1.0)


def test_where_nothing_is_counted_how_busy_a_card_says_it_is_stands_for_the_interval(cluster: Cluster) -> None:
    rows, jobs = taken(
        cluster,
        cluster.cards(100, card(None, utilization=0.9)),
        cluster.cards(110, card(None, utilization=0.5)),
        cluster.cards(120, card(None, utilization=None)),
    )
    assert [row.usage.gpu_time for row in rows] == [0.0, 5.0, None]
    assert jobs["7"].gpu_time == 5.0


def test_a_card_that_says_nothing_for_a_while_was_not_idle_then(cluster: Cluster) -> None:
    """Busy whenever it was seen: ten seconds, and ten after a gap of hours in which nobody looked."""
    _, jobs = taken(
        cluster,
        cluster.cards(100, card(None, utilization=1.0)),
        cluster.cards(110, card(None, utilization=1.0)),
        cluster.cards(120, card(None, utilization=None)),
        cluster.cards(9000, card(None, utilization=1.0)),
    )
    job = jobs["7"]
    assert job.gpu_held == 8900.0
    assert job.reserved["gpus"].used == pytest.approx(1.0)


def test_a_card_that_passes_on_is_counted_once(cluster: Cluster) -> None:
    """Eight seconds of work in ten, of which the new holder was there for four."""
    young = {"pid": 500, "started": 106.0, "scheduler": "slurm", "job": "8"}
    _, jobs = taken(
        cluster,
        cluster.cards(100, card(10.0)),
        cluster.processes(110, young),
        cluster.cards(110, card(18.0, job="8")),
    )
    assert (jobs["8"].gpu_time, jobs["8"].gpu_held) == (4.0, 4.0)
    assert jobs["7"].gpu_time is None, "one look says nothing of the time before it"


def test_a_card_nobody_holds_is_nobodys_and_no_job(cluster: Cluster) -> None:
    rows, jobs = taken(cluster, cluster.cards(100, card(0.0, job=None)), cluster.cards(110, card(9.0, job=None)))
    assert rows == []
    assert jobs == {}


def test_a_driver_that_began_anew_counts_from_zero(cluster: Cluster) -> None:
    _, jobs = taken(cluster, cluster.cards(100, card(1000.0)), cluster.cards(110, card(3.0)))
    assert jobs["7"].gpu_time == 3.0


def test_a_card_that_was_never_taken_back_keeps_no_job_alive(cluster: Cluster) -> None:
    process = {"pid": 500, "started": 90.0, "scheduler": "slurm", "job": "7"}
    messages = [
        cluster.processes(100, process),
        cluster.cards(100, card(0.0)),
        cluster.processes(110),
        cluster.cards(110, card(0.0)),
    ]
    _, jobs = taken(cluster, *messages)
    assert jobs["7"].state == "ended"


def test_a_restarted_server_goes_on_from_the_last_look(cluster: Cluster) -> None:
    first = Ledger(cluster.nothing())
    first.take(cluster.cards(100, card(5.0)))
    (job,) = first.emptied()[1]
    second = Ledger(cluster.nothing(msgspec.convert(msgspec.to_builtins(job), Job)))
    second.restore(cluster.cards(100, card(5.0)))
    second.take(cluster.cards(110, card(9.0)))
    (row,), (again,) = second.emptied()
    assert (row.usage.gpu_time, row.usage.seconds, again.key) == (4.0, 10.0, job.key)
