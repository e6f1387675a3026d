"""Our messages as Sonar documents: what becomes of each value, and when a document is made."""

from typing import Any

import pytest

from jobsight import __version__
from jobsight.compat.sonar import Translator, timestamp
from jobsight.schema.message import Origin, Status
from tests.compat import rules
from tests.compat.messages import (
    BOOT,
    EPOCH,
    attributes,
    message,
    only_process,
    processes,
    sampled,
    translator,
)

CPU = {"cpu": 0, "user_time": 10.57, "nice_time": 0.43, "system_time": 2.0, "idle_time": 9.0, "iowait_time": 5.0,
       "interrupt_time": 0.99, "stolen_time": 1.0}  # fmt: skip
MEMORY = {"total": 8 * 2**30, "available": 2**30, "free": 2**20}
LOAD = {"load1": 0.0, "load5": 1.5, "load15": 2.0, "runnable": 3, "existing": 200}
DISK = {"device": "vda", "reads": 40, "read": 320 * 512, "read_time": 0.005, "writes": 7, "written": 56 * 512,
        "write_time": 0.002, "queue": 1, "busy_time": 0.008}  # fmt: skip
HARDWARE = {"model": "Xeon", "cpus": 8, "cores": 4, "sockets": 2, "threads": 2, "memory": 8 * 2**30,
            "system": "Debian", "kernel": "6.1.0", "architecture": "x86_64", "distances": "10 21;21 10"}  # fmt: skip
SLUID = "s0123456789ABC"


# A process's values


def test_a_process_is_told_in_kibibytes_seconds_and_percent() -> None:
    values = {"state": "R", "threads": 4, "cpu_user": 100.0, "cpu_system": 20.0, "cpu_children": 7.5}
    sizes = {"memory_anon": 2**20, "read": 1025, "written": 2048}
    assert only_process(processes({**values, **sizes})) == {
        "resident_memory": 1024,
        "cmd": "sim",
        "pid": 100,
        "ppid": 1,
        "num_threads": 3,
        "cpu_avg": 30,  # 120 s in 400
        "cpu_util": 30,
        "cpu_time": 128,
        "data_read": 2,
        "data_written": 2,
    }


def test_cpu_util_is_the_mean_since_the_last_sample() -> None:
    before = processes({"cpu_user": 100.0, "cpu_system": 20.0, "cpu_children": 5.0})
    after = processes({"cpu_user": 109.0, "cpu_system": 21.0, "cpu_children": 5.0}, after=30.0)
    found = only_process(before, after)
    assert (found["cpu_util"], found["cpu_avg"], found["cpu_time"]) == (33.333, 30.2, 135)


def test_what_is_unknown_or_nothing_is_left_out() -> None:
    found = only_process(processes({"parent": 0, "memory_anon": None}))
    assert found == {"cmd": "sim", "pid": 100}


def test_address_space_is_not_sent_in_place_of_what_sonar_calls_virtual_memory() -> None:
    assert "virtual_memory" not in only_process(processes({"memory_virtual": 2**40}))
    assert only_process(processes({"memory_data": 2**30}))["virtual_memory"] == 2**20


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"container": "docker"}, True),
        ({"container": "namespace"}, True),
        ({"container": None}, None),
        ({"scheduler": "podman"}, True),  # from an agent that does not tell of containers
        ({}, None),
    ],
)
def test_a_process_in_a_container_is_marked(values: dict[str, Any], expected: bool | None) -> None:
    assert only_process(processes(values)).get("in_container") is expected


def test_a_rolled_up_row_counts_the_others_and_each_ones_further_threads() -> None:
    found = only_process(processes({"merged": 3, "threads": 10}))
    assert (found["rolledup"], found["num_threads"], found["pid"]) == (3, 6, 100)


@pytest.mark.parametrize(
    ("command", "state", "expected"),
    [("sh", "Z", "sh <defunct>"), ("a\x1bb\x7f", "S", "a b "), ("tab\there", "S", "tab\there"), ("é", "R", "é")],
)
def test_names_lose_their_control_characters_and_the_dead_are_marked(command: str, state: str, expected: str) -> None:
    assert only_process(processes({"command": command, "state": state}))["cmd"] == expected


# Jobs


def jobs(*rows: dict[str, Any]) -> list[tuple[Any, ...]]:
    """User, job, epoch and pids of each job."""
    found = sampled(processes(*rows))["jobs"]
    return [(j["user"], j["job"], j.get("epoch"), [p["pid"] for p in j["processes"]]) for j in found]


def test_slurms_number_has_no_epoch_and_another_job_is_a_process_group_of_this_boot() -> None:
    slurm = {"scheduler": "slurm", "job": "100"}
    assert jobs({"pid": 1, **slurm}, {"pid": 2}, {"pid": 3, **slurm}, {"pid": 4, "scheduler": "systemd"}) == [
        ("ann", 100, None, [1, 3]),
        ("ann", 100, EPOCH, [2, 4]),
    ]


def test_a_job_with_processes_of_two_users_is_two_records() -> None:
    slurm = {"scheduler": "slurm", "job": "8"}
    assert jobs({"pid": 1, **slurm}, {"pid": 2, "owner": "1234", **slurm}) == [
        ("ann", 8, None, [1]),
        ("_user_1234", 8, None, [2]),
    ]


def test_processes_without_a_number_are_never_merged() -> None:
    unnamed = {"scheduler": "slurm", "job": SLUID}
    rows: list[dict[str, Any]] = [{"pid": 1, **unnamed}, {"pid": 2, **unnamed}, {"pid": 3, "process_group": 0}]
    rows += [{"pid": 4, "process_group": -1}, {"pid": 5, "scheduler": "slurm", "job": str(2**32)}]
    assert jobs(*rows) == [("ann", 0, EPOCH, [pid]) for pid in (1, 2, 3, 4, 5)]


def test_a_job_named_by_its_sluid_gets_its_number_from_its_allocation() -> None:
    other = "s" + "Z" * 13
    rows: list[dict[str, Any]] = [{"scheduler": "slurm", "job": SLUID, "number": 77}]
    rows += [{"scheduler": "slurm", "job": other, "number": None}]
    found = sampled(
        message("allocation", rows),
        processes({"pid": 1, "scheduler": "slurm", "job": SLUID}, {"pid": 2, "scheduler": "slurm", "job": other}),
    )["jobs"]
    assert [(job["job"], job.get("epoch")) for job in found] == [(77, None), (0, EPOCH)]


def test_an_allocation_run_that_failed_does_not_take_a_number_away() -> None:
    rows = [{"scheduler": "slurm", "job": SLUID, "number": "77"}]
    failed = message("allocation", [], 30.0, status=Status.FAILED, error="no")
    (job,) = sampled(message("allocation", rows), failed, processes({"scheduler": "slurm", "job": SLUID}))["jobs"]
    assert job["job"] == 77


def test_a_clock_set_by_less_than_two_seconds_does_not_split_jobs() -> None:
    made = translator()
    boots = []
    for after, step in ((0.0, 0.3), (30.0, -0.4), (60.0, 1.9), (90.0, 3600.0)):
        moved = processes({}, after=after)
        (document,) = made.documents(moved._replace(time=moved.time + step))
        boots.append(attributes(document)["jobs"][0]["epoch"] - EPOCH)
    assert boots == [0, 0, 0, 3600]


# The node


def test_the_node_has_the_newest_totals_of_the_round() -> None:
    half = {**CPU, "cpu": 2}
    found = sampled(
        message("cpu", [CPU, half]), message("memory", [MEMORY]), message("load", [LOAD]), processes({})
    )  # fmt: skip
    assert found["system"] == {
        "boot": timestamp(BOOT, 0),
        "cpus": [13, 0, 13],
        "used_memory": 7 * 2**20,
        "load1": 0,
        "load5": 1.5,
        "load15": 2,
        "runnable_entities": 3,
        "existing_entities": 200,
    }


def test_values_that_no_longer_hold_are_not_used() -> None:
    assert set(sampled(message("load", [LOAD]), processes({}, after=45.0))["system"]) > {"boot"}
    assert set(sampled(message("load", [LOAD]), processes({}, after=46.0))["system"]) == {"boot"}
    broken = message("load", [], 30.0, status=Status.FAILED, error="no")
    assert set(sampled(message("load", [LOAD]), broken, processes({}, after=30.0))["system"]) == {"boot"}


def test_a_disk_is_told_only_when_every_column_is_known() -> None:
    assert "disks" not in sampled(message("disk", [DISK]), processes({}))["system"]
    further = {"major": 254, "minor": 0, "reads_merged": 3, "writes_merged": 4, "queue_time": 0.007}
    found = sampled(message("disk", [{**DISK, **further}]), processes({}))["system"]["disks"]
    stats = [40, 3, 320, 5, 7, 4, 56, 2, 1, 8, 7]
    assert found == [{"name": "vda", "major": 254, "minor": 0, "stats": stats}]


def test_an_idle_node_still_says_that_it_is_there() -> None:
    assert sampled(processes())["jobs"] == []


def test_two_nodes_and_two_boots_are_kept_apart() -> None:
    made = translator()
    made.documents(message("load", [LOAD]))
    for origin in (Origin("fox", "n2", "boot1"), Origin("fox", "n1", "boot2")):
        (document,) = made.documents(processes({}, origin=origin))
        assert set(attributes(document)["system"]) == {"boot"}
        assert document.node == origin.node


# When and how


def test_hardware_is_a_sysinfo() -> None:
    (document,) = translator().documents(message("hardware", [HARDWARE], every=3600.0))
    assert document.kind == "sysinfo"
    assert attributes(document) == {
        "time": "2026-11-15T09:00:00+01:00",
        "cluster": "fox",
        "node": "n1",
        "os_name": "Linux",
        "os_release": "6.1.0",
        "architecture": "x86_64",
        "numa_nodes": 2,
        "sockets": 2,
        "cores_per_socket": 2,
        "threads_per_core": 2,
        "cpu_model": "Xeon",
        "memory": 8 * 2**20,
        "distances": [[10, 21], [21, 10]],
    }


@pytest.mark.parametrize(
    ("cpus", "cores", "sockets", "threads", "expected"),
    [
        (8, None, None, None, (1, 8, 1)),
        (8, 4, None, 2, (1, 4, 2)),
        (8, 4, 2, None, (2, 2, 2)),
        (127, 64, 2, 2, (2, 32, 2)),
        (63, 63, 2, 1, (2, 32, 1)),
        (24, 16, 1, 2, (1, 16, 2)),
    ],
)
def test_the_shape_of_a_node_never_has_a_zero(
    cpus: int, cores: int | None, sockets: int | None, threads: int | None, expected: tuple[int, ...]
) -> None:
    row = {**HARDWARE, "cpus": cpus, "cores": cores, "sockets": sockets, "threads": threads}
    (document,) = translator().documents(message("hardware", [row]))
    found = attributes(document)
    assert tuple(found[key] for key in ("sockets", "cores_per_socket", "threads_per_core")) == expected


@pytest.mark.parametrize("distances", [None, "10 21;21", "10;10 10"])
def test_distances_that_are_no_square_are_unknown(distances: str | None) -> None:
    (document,) = translator().documents(message("hardware", [{**HARDWARE, "distances": distances}]))
    assert (attributes(document)["numa_nodes"], attributes(document)["distances"]) == (0, [])


def test_an_older_agents_hardware_is_still_a_sysinfo() -> None:
    row = {name: value for name, value in HARDWARE.items() if name not in ("threads", "architecture", "distances")}
    (document,) = translator().documents(message("hardware", [row]))
    assert attributes(document)["architecture"] == ""
    rules.check(document.content, "sysinfo")


@pytest.mark.parametrize("status", [Status.FAILED, Status.LATE])
def test_a_run_that_failed_is_an_error_in_place_of_a_sample(status: Status) -> None:
    (document,) = translator().documents(message("process", [], status=status, error="OSError: no"))
    assert document.kind == "sample"
    assert document.content == {
        "meta": {"producer": "jobsight", "version": __version__},
        "errors": [
            {"time": "2026-11-15T09:00:00+01:00", "detail": "process: OSError: no", "cluster": "fox", "node": "n1"}
        ],
    }


def test_a_source_that_is_not_there_gives_no_document() -> None:
    for collector in ("hardware", "process"):
        assert translator().documents(message(collector, [], status=Status.ABSENT)) == []


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, "08:00:00+00:00"), (-12600, "04:30:00-03:30"), (19800, "13:30:00+05:30")],
)
def test_times_are_local_with_their_offset_and_boot_is_utc(offset: int, expected: str) -> None:
    (document,) = Translator(offset).documents(processes({}, after=0.9))
    assert attributes(document)["time"] == f"2026-11-15T{expected}"
    assert attributes(document)["system"]["boot"] == "2026-11-14T08:00:00+00:00"
