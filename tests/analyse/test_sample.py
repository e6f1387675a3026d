"""Two of Slurm's nodes on one machine: a job has a control group of each, and its total is theirs together."""

from typing import Any

from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.ingest.accept import Accepted
from tests.analyse.conftest import Cluster


def group(place: str, cpu: float | None, **more: Any) -> dict[str, Any]:
    return {"path": f"slurm_{place}/uid_1/job_7", "cpu_time": cpu, **more}


def used(cluster: Cluster, *samples: Accepted) -> list[tuple[str, float | None]]:
    """Jobs and their CPU time, in the order they began."""
    ledger = Ledger(cluster.nothing())
    jobs: dict[str, Job] = {}
    for sample in samples:
        ledger.take(sample)
        jobs |= {job.key: job for job in ledger.emptied()[1]}
    found = sorted(jobs.values(), key=lambda job: job.started)
    return [(job.id, part.cpu_time) for job in found for part in job.parts]


def test_both_groups_count(cluster: Cluster) -> None:
    found = used(
        cluster,
        cluster.groups(100, group("n1", 1.0), group("n2", 2.0)),
        cluster.groups(110, group("n1", 11.0), group("n2", 7.0)),
    )
    assert found == [("7", 18.0)]


def test_a_group_that_comes_later_is_added(cluster: Cluster) -> None:
    found = used(
        cluster,
        cluster.groups(100, group("n1", 5.0)),
        cluster.groups(110, group("n1", 10.0), group("n2", 3.0)),
        cluster.groups(120, group("n1", 15.0), group("n2", 4.0)),
    )
    assert found == [("7", 19.0)]


def test_what_a_group_counted_stays_when_it_goes_first(cluster: Cluster) -> None:
    found = used(
        cluster,
        cluster.groups(100, group("n1", 5.0), group("n2", 20.0)),
        cluster.groups(110, group("n1", 10.0)),
        cluster.groups(120, group("n1", 12.0)),
    )
    assert found == [("7", 32.0)]


def test_a_counter_that_could_not_be_read_once_keeps_its_value(cluster: Cluster) -> None:
    found = used(
        cluster,
        cluster.groups(100, group("n1", 5.0), group("n2", 20.0)),
        cluster.groups(110, group("n1", 10.0), group("n2", None)),
        cluster.groups(120, group("n1", 12.0), group("n2", 30.0)),
    )
    assert found == [("7", 42.0)]


def test_a_run_that_begins_anew_does_not_inherit_the_groups_of_the_one_before(cluster: Cluster) -> None:
    found = used(
        cluster,
        cluster.groups(100, group("n1", 50.0), group("n2", 20.0)),
        cluster.groups(110, group("n1", 1.0)),
        cluster.groups(120, group("n1", 3.0)),
    )
    assert sum(cpu or 0.0 for _, cpu in found) == 73.0


def test_memory_adds_up_and_what_overlaps_is_not_guessed(cluster: Cluster) -> None:
    rows = [group(n, 1.0, memory_anon=100, memory_peak=900, memory_limit=500, cpus=4) for n in ("n1", "n2")]
    ledger = Ledger(cluster.nothing())
    ledger.take(cluster.groups(100, *rows))
    usage, (job,) = ledger.emptied()
    (row,) = [stamped.usage for stamped in usage]
    assert (row.memory, row.memory_limit, row.cpus) == (200, 1000, 4)
    assert job.parts[0].group_peak is None
