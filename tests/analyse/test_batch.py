"""What schedulers say, joined with what was sampled: one job is one document, in whatever order it is heard of."""

from itertools import permutations
from typing import Any

import msgspec
import pytest

from jobsight import catalogue
from jobsight.analyse.batch import COLUMNS, Batch, batches, joined
from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.summary import Summary, summary
from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status
from jobsight.schema.record import fields_of

Cluster = Any
MIB = 2**20


class Shelf:
    """Jobs that were handed over, as a store keeps them: a copy, never the thing itself."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def jobs(self) -> list[Job]:
        return [msgspec.json.decode(document, type=Job) for document in self.kept.values()]

    def latest_job(self, cluster: str, scheduler: str, job: str, scope: str, until: float) -> Job | None:
        place = cluster, scheduler, job, scope
        found = [one for one in self.jobs() if (one.cluster, one.scheduler, one.id, one.scope) == place]
        return max((one for one in found if one.started <= until), key=lambda one: one.seen, default=None)

    def named_jobs(self, cluster: str, scheduler: str, numbers: Any) -> list[Job]:
        return [
            one for one in self.jobs() if (one.cluster, one.scheduler) == (cluster, scheduler) and one.id in numbers
        ]


def told(time: float, *rows: dict[str, Any], collector: str = "slurmjob") -> Accepted:
    plain = {"job": "7", "state": "RUNNING", "submit": 90.0, "owner": "alice", "account": "physics"}
    plain |= {"part": "queued"} if collector == "slurmqueue" else {"scheduler": "slurm", "entry": 1}
    full = [{**plain, **row} for row in rows]
    names = dict.fromkeys(name for row in full for name in row)
    columns = {name: [row.get(name) for row in full] for name in names}
    return Accepted(b"", "fox", "ctl", "b1", collector, time, time, 60, Status.OK, 0.0, None, {}, len(rows), columns)


def counted(*messages: Accepted, forgetful: bool = False, now: float | None = None) -> list[Summary]:
    """Summaries after some messages; `forgetful`: as if the server was started anew before each."""
    shelf = Shelf()
    ledger = Ledger(shelf)
    for message in messages:
        ledger = Ledger(shelf) if forgetful else ledger
        ledger.take(message)
        shelf.kept |= {job.key: msgspec.json.encode(job) for job in ledger.emptied()[1]}
    end = max(message.time for message in messages) if now is None else now
    found = [summary(msgspec.json.decode(document), end) for document in shelf.kept.values()]
    return sorted(found, key=lambda item: item.started)


PENDING = {"state": "PENDING", "reason": "Priority", "requested_cpus": 4}
RUNNING = {"state": "RUNNING", "start": 100.0, "cpus": 4, "nodes": "n1", "node_count": 1, "memory": 100 * MIB}
ENDED = {
    **RUNNING,
    "state": "FAILED",
    "ended": 160.0,
    "elapsed": 60.0,
    "exit_code": 3,
    "exit_signal": 0,
    "cpu_time": 50.0,
}


def sampled(cluster: Cluster, time: float, began: float = 100.5, cpu: float = 1.0) -> Accepted:
    row = {"pid": 50, "started": began, "scheduler": "slurm", "job": "7", "cpu_user": cpu, "memory_anon": 40 * MIB}
    found: Accepted = cluster.processes(time, row)
    return found


def test_a_job_heard_of_in_any_order_is_one_document_and_the_same(cluster: Cluster) -> None:
    messages = [
        told(95, PENDING), sampled(cluster, 110, cpu=8.0), told(130, RUNNING), told(170, ENDED),
    ]  # fmt: skip
    results = [counted(*order) for order in permutations(messages)]
    results += [counted(*order, forgetful=True) for order in permutations(messages) if order.index(messages[1]) == 3]
    for (job,) in results:
        assert (job.state, job.started, job.elapsed, job.owner, job.account) == ("ended", 100, 60, "alice", "physics")
        assert job.batch is not None
        assert (job.batch.state, job.batch.exit_code, job.batch.reason) == ("FAILED", 3, "Priority")
        assert (job.cpu_time, job.cpus, job.memory_limit) == (8.0, 4, 100 * MIB)


def test_a_job_that_waits_is_pending_and_has_used_no_time(cluster: Cluster) -> None:
    (job,) = counted(told(95, PENDING))
    assert (job.state, job.elapsed, job.nodes, job.cpu_time, job.started) == ("pending", 0, [], None, 90)
    (job,) = counted(told(95, PENDING), now=95 + 3 * 3600)
    assert job.state == "silent", "nobody has told of it for hours"


def test_a_job_nobody_sampled_has_its_schedulers_figures() -> None:
    (job,) = counted(told(170, ENDED))
    assert (job.state, job.source, job.cpu_time, job.nodes) == ("ended", "scheduler", 50, ["n1"])
    assert job.cores_mean == pytest.approx(50 / 60)


def test_a_job_that_waited_for_days_is_the_one_that_runs(cluster: Cluster) -> None:
    began = 90 + 5 * 86400.0
    (job,) = counted(told(95, PENDING), sampled(cluster, began + 30, began))
    assert (job.state, job.started) == ("running", began)


def test_a_finished_job_stays_finished_when_samples_lag(cluster: Cluster) -> None:
    (job,) = counted(sampled(cluster, 110), told(170, ENDED), sampled(cluster, 150, cpu=20.0))
    assert (job.state, job.cpu_time) == ("ended", 20.0)


def test_an_older_row_takes_nothing_back() -> None:
    (job,) = counted(told(170, ENDED), told(180, PENDING), told(190, {**RUNNING, "qos": "high"}))
    assert job.batch is not None
    assert (job.state, job.batch.state, job.batch.ended, job.batch.qos) == ("ended", "FAILED", 160, "high")


def test_a_number_that_comes_back_is_another_job(cluster: Cluster) -> None:
    later = {**RUNNING, "submit": 5000.0, "start": 5010.0, "entry": 9}
    first, second = counted(told(170, ENDED), told(5020, later), sampled(cluster, 5040, began=5011.0))
    assert (first.state, second.state) == ("ended", "running")
    assert (first.cpu_time, second.cpu_time) == (50.0, 1.0)


@pytest.mark.parametrize("forgetful", [False, True])
def test_each_run_of_a_requeued_job_is_its_own(cluster: Cluster, forgetful: bool) -> None:
    first = {**RUNNING, "state": "REQUEUED", "ended": 120.0, "elapsed": 20.0}
    again = {**RUNNING, "submit": 120.0, "start": 125.0, "entry": 2}
    one, two = counted(
        sampled(cluster, 110, cpu=5.0), told(122, first), told(122.5, {**PENDING, "submit": 120.0, "entry": 2}),
        sampled(cluster, 140, began=125.5, cpu=3.0), told(150, again),
        forgetful=forgetful,
    )  # fmt: skip
    assert (one.cpu_time, two.cpu_time) == (5.0, 3.0)
    assert (one.state, one.elapsed, two.state, two.started) == ("ended", 20, "running", 125)


def test_runs_that_were_mixed_are_marked_to_be_counted_again(cluster: Cluster) -> None:
    ledger = Ledger(Shelf())
    first = {**RUNNING, "state": "REQUEUED", "ended": 120.0}
    for message in (
        sampled(cluster, 110, cpu=5.0), sampled(cluster, 140, began=125.5, cpu=3.0),
        told(150, first, {**RUNNING, "submit": 120.0, "start": 125.0, "entry": 2}),
    ):  # fmt: skip
        ledger.take(message)
    assert ledger.doubts() == [("fox", "n1", "", 100.5, "process"), ("fox", "n1", "", 140.0, "process")]
    assert ledger.doubts() == []


def test_control_group_of_the_next_run_counts_for_that_run(cluster: Cluster) -> None:
    first = {**RUNNING, "state": "REQUEUED", "ended": 120.0, "elapsed": 20.0}
    one, two = counted(
        sampled(cluster, 110), cluster.groups(110, {"cpu_time": 9.0, "memory_anon": 1}), told(122, first),
        sampled(cluster, 130, began=125.5), cluster.groups(130, {"cpu_time": 12.0, "memory_anon": 1}),
    )  # fmt: skip
    assert (one.cpu_time, two.cpu_time) == (9.0, 12.0)


def test_the_queue_tells_why_a_job_waits_and_what_it_was_given() -> None:
    queued = {"state": "PENDING", "reason": "Dependency", "dependency": "afterok:6", "cpus": 4, "node_count": 2}
    (job,) = counted(told(95, queued, collector="slurmqueue"))
    assert job.batch is not None
    assert (job.state, job.batch.dependency, job.reserved["cores"].requested) == ("pending", "afterok:6", 4)
    given = {"state": "RUNNING", "part": "given", "start": 100.0, "cpus": 2, "memory": 50 * MIB}
    rows = [{**given, "nodes": name, "devices": "gpu:a100:0", "cores": "0:0-1"} for name in ("n1", "n2")]
    whole = {"state": "RUNNING", "start": 100.0, "cpus": 4, "nodes": "n[1-2]", "node_count": 2}
    (job,) = counted(told(105, whole, *rows, collector="slurmqueue"), told(106, {**RUNNING, "node_count": 2}))
    assert job.batch is not None
    assert [(part.nodes, part.devices) for part in job.batch.given] == [("n1", "gpu:a100:0"), ("n2", "gpu:a100:0")]
    assert (job.state, job.memory_limit, job.cpus) == ("running", 50 * MIB, 4)


def test_tasks_of_an_array_are_known_by_their_index_and_what_waits_becomes_the_last() -> None:
    waiting = {**PENDING, "job": "20", "array_job": "20", "array_waiting": "[1-2]", "entry": 5}
    tasks = [
        {**RUNNING, "job": number, "array_job": "20", "array_index": index, "entry": entry}
        for number, index, entry in (("21", 1, 6), ("20", 2, 8))
    ]
    found = counted(told(95, waiting), told(130, *tasks))
    assert sorted((job.id, job.number) for job in found) == [("20", "20_2"), ("21", "20_1")]
    assert all(job.batch and job.batch.array_waiting is None for job in found)


def test_group_named_by_sluid_is_the_job_of_that_number(cluster: Cluster) -> None:
    row = {"pid": 50, "started": 100.5, "scheduler": "slurm", "job": "s01ABC", "cpu_user": 4.0}
    (job,) = counted(cluster.processes(110, row), told(130, {**RUNNING, "sluid": "s01ABC"}))
    assert (job.id, job.number, job.cpu_time, job.owner) == ("s01ABC", "7", 4.0, "alice")


def test_steps_are_not_jobs() -> None:
    (job,) = counted(told(170, ENDED, {**ENDED, "step": "batch", "exit_code": 9, "cpus": 1}))
    assert (job.batch and job.batch.exit_code, job.cpus) == (3, 4)


def test_scheduler_names_a_job_and_an_environment_does_not_rename_it(cluster: Cluster) -> None:
    said = cluster.allocations(129, {"name": "fake", "account": "secret", "owner": "mallory"})
    (job,) = counted(told(120, {**RUNNING, "name": "true"}), sampled(cluster, 128), said, sampled(cluster, 138))
    assert (job.name, job.account, job.owner) == ("true", "physics", "alice")


def test_run_under_the_same_submission_starts_afresh() -> None:
    """PBS starts a job anew and calls it the same."""
    pbs = {"scheduler": "pbs", "entry": None}
    (job,) = counted(told(170, {**ENDED, **pbs, "restarts": 1}), told(200, {**PENDING, **pbs, "restarts": 2}))
    assert (job.state, job.batch and job.batch.ended) == ("pending", None)


def test_times_that_are_none_are_missing() -> None:
    (job,) = counted(told(170, {**ENDED, "submit": 1e17, "eligible": -5.0, "start": 0.0}))
    assert job.batch is not None
    assert (job.batch.submit, job.batch.eligible, job.batch.start, job.batch.ended) == (None, None, None, 160)


def test_a_process_older_than_its_job_is_still_its_own(cluster: Cluster) -> None:
    messages = [told(120, RUNNING), sampled(cluster, 130, began=3.0, cpu=2.0), told(170, ENDED)]
    for order in permutations(messages):
        (job,) = counted(*order)
        assert (job.started, job.cpu_time) == (100, 2.0)


def test_a_node_whose_clock_is_ahead_has_the_same_jobs(cluster: Cluster) -> None:
    (job,) = counted(told(170, ENDED), sampled(cluster, 185, began=175.0, cpu=2.0))
    assert (job.state, job.cpu_time, job.started) == ("ended", 2.0, 100)


def test_two_rows_joined_are_the_same_either_way_round() -> None:
    rows = [batch for _, batch in batches(told(95, PENDING, RUNNING, ENDED))]
    for one in rows:
        for other in rows:
            assert joined(one, other) == joined(other, one)


def test_columns_are_those_of_the_records() -> None:
    known = {f.name for name in ("slurmjob", "slurmqueue") for f in fields_of(catalogue.collector(name).record)}
    assert set(COLUMNS) <= known
    assert {field.name for field in msgspec.structs.fields(Batch)} - known == {"told", "given"}
