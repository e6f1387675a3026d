"""From messages to jobs, with the truth worked out by hand. Nodes booted at second 0, so uptime is time."""

from typing import Any

import msgspec
import pytest

from jobsight.analyse.job import Job
from jobsight.analyse.ledger import Ledger
from jobsight.analyse.summary import Summary, summary
from jobsight.ingest.accept import Accepted

Cluster = Any


def counted(cluster: Cluster, *messages: Accepted, known: tuple[Job, ...] = ()) -> dict[str, Summary]:
    """Summaries by id after some messages."""
    ledger = Ledger(cluster.nothing(*known))
    jobs: dict[str, Job] = {}
    for message in messages:
        ledger.take(message)
        jobs |= {job.key: job for job in ledger.emptied()[1]}
    now = max(message.time for message in messages)
    found = [summary(msgspec.to_builtins(job), now) for job in jobs.values()]
    return {item.id if sum(i.id == item.id for i in found) == 1 else item.key: item for item in found}


def test_cpu_time_before_the_first_sample_counts_since_the_process_started(cluster: Cluster) -> None:
    job = counted(cluster, cluster.processes(100, {"pid": 100, "started": 60.0, "cpu_user": 30.0}))["100"]
    assert job.started == 60
    assert job.elapsed == 40
    assert job.cpu_time == 30
    assert job.cores_mean == pytest.approx(0.75)
    assert job.coverage == pytest.approx(10 / 40)


def test_growth_between_samples_adds_up(cluster: Cluster) -> None:
    samples = [
        cluster.processes(
            100 + 10 * i, {"pid": 100, "started": 95.0, "cpu_user": 4.0 + 8.0 * i, "cpu_system": 1.0 + i}
        )
        for i in range(5)
    ]
    job = counted(cluster, *samples)["100"]
    assert job.cpu_time == pytest.approx(4 + 32 + 1 + 4)
    assert job.elapsed == 45
    assert job.coverage == 1.0


def test_a_shell_that_inherits_its_childs_hours_shows_no_peak(cluster: Cluster) -> None:
    shell = {"pid": 100, "started": 10.0}
    before = cluster.processes(100, shell, {"pid": 200, "started": 20.0, "parent": 100, "cpu_user": 5000.0})
    after = cluster.processes(110, {**shell, "cpu_children": 5003.0})
    ledger = Ledger(cluster.nothing())
    ledger.take(before)
    ledger.emptied()
    ledger.take(after)
    (row,), _ = ledger.emptied()
    assert row.usage.cpu_time == pytest.approx(3.0)


def test_a_daemon_that_inherits_from_another_job_shows_no_peak_either(cluster: Cluster) -> None:
    """sshd reaps a login: grandchild and child die in one interval, both of another job."""
    sshd = {"pid": 50, "started": 1.0, "session": 50, "job": "50"}
    before = cluster.processes(
        100, sshd,
        {"pid": 100, "started": 10.0, "parent": 50, "cpu_children": 7.0},
        {"pid": 200, "started": 20.0, "parent": 100, "cpu_user": 900.0},
    )  # fmt: skip
    jobs = counted(cluster, before, cluster.processes(110, {**sshd, "cpu_children": 908.0}))
    assert jobs["50"].cpu_time == pytest.approx(1.0)
    assert jobs["100"].cpu_time == pytest.approx(907.0)
    assert jobs["100"].state == "ended"


def test_children_that_nobody_waits_for_are_not_taken_off_their_parent(cluster: Cluster) -> None:
    parent = {"pid": 100, "started": 10.0}
    before = cluster.processes(100, parent, {"pid": 200, "started": 20.0, "parent": 100, "cpu_user": 50.0})
    after = cluster.processes(110, {**parent, "cpu_user": 4.0})
    assert counted(cluster, before, after)["100"].cpu_time == pytest.approx(54.0)


def test_a_reused_session_number_is_another_job(cluster: Cluster) -> None:
    jobs = counted(
        cluster,
        cluster.processes(100, {"pid": 100, "started": 50.0, "cpu_user": 40.0}),
        cluster.processes(110),
        cluster.processes(500, {"pid": 100, "started": 495.0, "cpu_user": 1.0, "owner": "bob"}),
    )
    assert len(jobs) == 2
    assert {(job.owner, job.cpu_time) for job in jobs.values()} == {("alice", 40.0), ("bob", 1.0)}


def test_a_session_number_reused_within_one_interval_is_another_job(cluster: Cluster) -> None:
    jobs = counted(
        cluster,
        cluster.processes(100, {"pid": 100, "started": 50.0, "cpu_user": 40.0}),
        cluster.processes(110, {"pid": 100, "started": 108.0, "cpu_user": 1.0, "owner": "bob"}),
    )
    assert {(job.owner, job.cpu_time, job.state) for job in jobs.values()} == {
        ("alice", 40.0, "ended"),
        ("bob", 1.0, "running"),
    }


def test_a_reboot_ends_the_jobs_of_the_boot_before(cluster: Cluster) -> None:
    jobs = counted(
        cluster,
        cluster.processes(1000, {"pid": 100, "started": 50.0, "cpu_user": 40.0}),
        cluster.processes(2000, {"pid": 100, "started": 50.0, "cpu_user": 2.0}, boot="b2"),
    )
    assert sorted((job.state, job.cpu_time) for job in jobs.values()) == [("ended", 40.0), ("running", 2.0)]


def test_a_message_that_comes_twice_or_late_changes_nothing(cluster: Cluster) -> None:
    first = cluster.processes(100, {"pid": 100, "started": 50.0, "cpu_user": 10.0})
    second = cluster.processes(110, {"pid": 100, "started": 50.0, "cpu_user": 19.0})
    assert counted(cluster, first, second, first, second)["100"].cpu_time == pytest.approx(19.0)


def test_a_lost_message_costs_coverage_and_no_work(cluster: Cluster) -> None:
    samples = [
        cluster.processes(time, {"pid": 100, "started": 0.0, "cpu_user": float(time)}) for time in (10, 20, 100, 110)
    ]
    job = counted(cluster, *samples)["100"]
    assert job.cpu_time == pytest.approx(110)
    assert job.cores_mean == pytest.approx(1.0)
    assert job.coverage == pytest.approx(40 / 110)


def test_busy_two_minutes_of_sixty_is_a_thirtieth(cluster: Cluster) -> None:
    """Time-weighted, whatever the cadence was while it was busy."""
    busy = [cluster.processes(t, {"pid": 100, "started": 0.0, "cpu_user": float(t)}, every=1) for t in range(1, 121)]
    idle = [
        cluster.processes(t, {"pid": 100, "started": 0.0, "cpu_user": 120.0}, every=60) for t in range(180, 3601, 60)
    ]
    job = counted(cluster, *busy, *idle)["100"]
    assert job.cores_mean == pytest.approx(120 / 3600)


def test_nodes_of_one_job_add_up_though_they_sample_at_different_seconds(cluster: Cluster) -> None:
    rows = {"started": 0.0, "scheduler": "slurm", "job": "7"}
    samples = []
    for t in range(30, 601, 30):
        samples.append(cluster.processes(t, {**rows, "pid": 5, "cpu_user": 8.0 * t}, node="n1", every=30))
        samples.append(cluster.processes(t + 20, {**rows, "pid": 9, "cpu_user": 8.0 * (t + 20)}, node="n2", every=30))
    job = counted(cluster, *samples)["7"]
    assert job.nodes == ["n1", "n2"]
    assert job.cpu_time == pytest.approx(8 * 600 + 8 * 620)
    assert job.cores_mean == pytest.approx((8 * 600 + 8 * 620) / 620)


def test_the_control_group_is_the_truth_for_totals_and_processes_stand_beside_it(cluster: Cluster) -> None:
    rows = {"started": 95.0, "scheduler": "slurm", "job": "7"}
    job = counted(
        cluster,
        cluster.machine(99, 64, 2**38),
        cluster.groups(100, {"cpu_time": 10.0, "memory_anon": 500, "memory_peak": 900, "cpus": 4, "oom_kills": 0}),
        cluster.processes(100.01, {**rows, "pid": 5, "cpu_user": 6.0}),
        cluster.groups(110, {"cpu_time": 30.0, "memory_anon": 700, "memory_peak": 950, "cpus": 4, "oom_kills": 1}),
        cluster.processes(110.01, {**rows, "pid": 5, "cpu_user": 16.0}),
    )["7"]
    assert (job.source, job.cpu_time, job.cpu_time_processes) == ("cgroup", 30.0, 16.0)
    assert (job.memory_peak, job.memory_peak_group, job.oom_kills) == (700, 950, 1)
    assert (job.cpus, job.memory_limit) == (4, 2**38)
    assert job.started == 95


def test_a_control_group_with_no_process_is_a_job_too(cluster: Cluster) -> None:
    job = counted(cluster, cluster.groups(100, {"cpu_time": 10.0}))["7"]
    assert (job.state, job.cpu_time, job.owner) == ("running", 10.0, "")


def test_a_counter_that_starts_again_grows_from_zero(cluster: Cluster) -> None:
    samples = [cluster.groups(100 + 10 * i, {"cpu_time": value}) for i, value in enumerate((10.0, 20.0, 3.0, 5.0))]
    assert counted(cluster, *samples)["7"].cpu_time == pytest.approx(25.0)


def test_missing_is_not_zero(cluster: Cluster) -> None:
    job = counted(cluster, cluster.processes(100, {"pid": 100, "started": 60.0, "memory_anon": None}))["100"]
    assert job.read is None
    assert job.written is None
    assert job.memory_peak is None
    assert job.memory_mean is None
    assert job.cpus is None


def test_a_ledger_restored_from_its_last_samples_goes_on_counting(cluster: Cluster) -> None:
    first = cluster.processes(100, {"pid": 100, "started": 50.0, "cpu_user": 10.0})
    ledger = Ledger(cluster.nothing())
    ledger.take(first)
    (_, (job,)) = ledger.emptied()
    fresh = Ledger(cluster.nothing(job))
    fresh.restore(first)
    fresh.take(cluster.processes(110, {"pid": 100, "started": 50.0, "cpu_user": 19.0}))
    (row,), (same,) = fresh.emptied()
    assert row.usage.cpu_time == pytest.approx(9.0)
    assert same.key == job.key
    assert same.parts[0].cpu_time == pytest.approx(19.0)


def test_a_clock_that_was_ahead_once_holds_up_nothing(cluster: Cluster) -> None:
    def sample(uptime: float, ahead: float = 0.0) -> Accepted:
        made: Accepted = cluster.processes(uptime, {"pid": 100, "started": 50.0, "cpu_user": uptime - 50})
        return msgspec.structs.replace(made, time=uptime + ahead)

    jobs = counted(cluster, sample(100), sample(110, 3600.0), sample(120), sample(130))
    assert jobs["100"].cpu_time == pytest.approx(80)
    assert jobs["100"].seen == 130
    assert jobs["100"].coverage == pytest.approx(40 / 80, abs=0.01)


def test_two_machines_of_one_name_are_not_endless_reboots(cluster: Cluster) -> None:
    samples = []
    for i in range(6):
        time = 1600.0 + 5 * i
        boot = "b1" if i % 2 else "b2"
        samples.append(cluster.processes(time, {"pid": 100, "started": 50.0, "cpu_user": 10.0 + i}, boot=boot))
    jobs = counted(cluster, *samples)
    assert sorted(job.cpu_time or 0 for job in jobs.values()) == [pytest.approx(14.0), pytest.approx(15.0)]


def test_jobs_of_two_clusters_with_one_number_are_two(cluster: Cluster) -> None:
    first = cluster.processes(100, {"pid": 5, "started": 90.0, "scheduler": "slurm", "job": "7", "cpu_user": 3.0})
    second = msgspec.structs.replace(first, cluster="hare")
    jobs = counted(cluster, first, second)
    assert sorted(jobs) == ["fox.slurm.7.90", "hare.slurm.7.90"]


def test_a_job_belongs_to_its_user_and_not_to_roots_helper(cluster: Cluster) -> None:
    helper = {"pid": 4, "started": 90.0, "scheduler": "slurm", "job": "7", "owner": "root"}
    jobs = counted(
        cluster,
        cluster.processes(100, helper),
        cluster.processes(110, helper, {**helper, "pid": 5, "owner": "alice"}),
    )
    assert jobs["7"].owner == "alice"


def test_a_number_that_is_missing_once_is_not_counted_again(cluster: Cluster) -> None:
    reads = (1000, None, 1000, None, 1500)
    samples = [
        cluster.processes(100 + 10 * i, {"pid": 100, "started": 90.0, "read": read}) for i, read in enumerate(reads)
    ]
    assert counted(cluster, *samples)["100"].read == 1500


def test_a_process_that_could_not_be_read_once_is_not_counted_again(cluster: Cluster) -> None:
    shell = {"pid": 100, "started": 10.0}
    work = {"pid": 200, "started": 20.0, "parent": 100, "cpu_user": 100.0}
    torn = msgspec.structs.replace(cluster.processes(110, shell), missing={"pid": "failed"})
    later = cluster.processes(120, shell, {**work, "cpu_user": 101.0})
    jobs = counted(cluster, cluster.processes(100, shell, work), torn, later)
    assert jobs["100"].cpu_time == pytest.approx(101.0)


def test_samples_of_cron_hold_until_the_next(cluster: Cluster) -> None:
    samples = [
        msgspec.structs.replace(cluster.processes(t, {"pid": 100, "started": 0.0, "cpu_user": float(t)}), every=None)
        for t in range(300, 3001, 300)
    ]
    job = counted(cluster, *samples)["100"]
    assert (job.coverage or 0) > 0.85
    assert job.every == 300


def test_parts_add_up_to_the_whole(cluster: Cluster) -> None:
    """Whatever moves between jobs, the sum over jobs is what the processes used."""
    tree = {"pid": 100, "started": 1.0, "job": "a"}
    jobs = counted(
        cluster,
        cluster.processes(100, tree, {"pid": 200, "started": 2.0, "parent": 100, "job": "b", "cpu_user": 11.0}),
        cluster.processes(110, tree, {"pid": 200, "started": 2.0, "parent": 100, "job": "c", "cpu_user": 16.0}),
        cluster.processes(120, {**tree, "cpu_children": 17.0}),
    )
    assert sum(job.cpu_time or 0 for job in jobs.values()) == pytest.approx(17.0)


def test_a_session_of_zombies_has_ended_and_its_last_use_counts(cluster: Cluster) -> None:
    jobs = counted(
        cluster,
        cluster.processes(100, {"pid": 100, "started": 50.0, "cpu_user": 40.0}),
        cluster.processes(110, {"pid": 100, "started": 50.0, "cpu_user": 44.0, "state": "Z"}),
        cluster.processes(120, {"pid": 100, "started": 50.0, "cpu_user": 44.0, "state": "Z"}),
    )
    assert (jobs["100"].state, jobs["100"].cpu_time, jobs["100"].seen) == ("ended", 44.0, 110.0)
    assert counted(cluster, cluster.processes(100, {"pid": 100, "started": 50.0, "state": "Z"})) == {}


def test_the_past_of_a_control_group_makes_no_peak(cluster: Cluster) -> None:
    ledger = Ledger(cluster.nothing())
    for node, time in (("n1", 100.0), ("n2", 103.0)):
        ledger.take(cluster.groups(time, {"cpu_time": 5000.0}, node=node))
    rows, (job,) = ledger.emptied()
    assert [row.usage.seconds for row in rows] == [0.0, 0.0]
    figures = summary(msgspec.to_builtins(job), 103.0)
    assert (figures.cpu_time, figures.cores_mean) == (10_000.0, None)


def test_job_has_the_labels_its_node_was_told_first(cluster: Cluster) -> None:
    told = {"job": "s0123456789ABC", "number": "4711", "account": "physics", "name": "melt", "owner": "alice"}
    job = counted(
        cluster,
        cluster.allocations(100, told, {"job": "8", "account": "biology"}),
        cluster.groups(100, {"job": "s0123456789ABC", "cpu_time": 5.0}),
        cluster.allocations(110),
        cluster.groups(110, {"job": "s0123456789ABC", "cpu_time": 6.0}),
    )["s0123456789ABC"]
    assert (job.number, job.account, job.name, job.owner) == ("4711", "physics", "melt", "alice")


def test_labels_of_another_node_and_another_job_are_not_taken(cluster: Cluster) -> None:
    jobs = counted(
        cluster,
        cluster.allocations(100, {"job": "7", "account": "physics"}, node="n2"),
        cluster.groups(100, {"job": "7"}, {"job": "8"}, node="n1"),
    )
    assert {job.account for job in jobs.values()} == {""}


def test_workers_in_one_row_count_what_they_gain_and_not_what_they_are(cluster: Cluster) -> None:
    parent = {"pid": 100, "started": 10.0, "scheduler": "slurm", "job": "7", "command": "mpirun", "merged": None}
    workers = {**parent, "pid": 200, "parent": 100, "command": "worker", "merged": 3, "cpu_user": 400.0}
    first = cluster.processes(100, parent, workers)
    second = cluster.processes(110, parent, {**workers, "cpu_user": 436.0})
    # One of them ended: the sum fell, and nothing was won by it.
    third = cluster.processes(120, parent, {**workers, "merged": 2, "cpu_user": 350.0})
    job = counted(cluster, first, second, third)["7"]
    assert job.commands["worker"] == pytest.approx(36.0)
    assert job.processes_peak == 5
