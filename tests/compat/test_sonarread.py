"""Sonar's documents read back: what becomes of each value, who is who, and what is refused."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.analyse.growth import Gain, Ident, Total, gains
from jobsight.compat.sonar import encode as sonar_line
from jobsight.compat.sonar import timestamp
from jobsight.compat.sonarread import Reader, Reading
from jobsight.compat.sonarreadfields import UnreadableError
from jobsight.compat.sonarreadsystem import part_of_another
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.message import Message, Status
from jobsight.schema.wire import encode
from tests.compat.messages import MACHINES, NOON, UP, processes, recorded, translator

BOOT = NOON - UP
EPOCH = int(BOOT) - 1577836800


def reader(cluster: str | None = None) -> Reader:
    return Reader(lambda _cluster, _node: None, cluster)


def process(pid: int, **values: Any) -> dict[str, Any]:
    return {"pid": pid, "ppid": 1, "cmd": "sim", **values}


def sample(after: float, *found: dict[str, Any], job: int = 7, epoch: int = 0, **changes: Any) -> dict[str, Any]:
    """A document with one job."""
    jobs = [{"job": job, "user": "ann", "epoch": epoch, "processes": list(found)}]
    about: dict[str, Any] = {"time": timestamp(NOON + after, 3600), "cluster": "fox", "node": "n1"}
    about |= {"system": {"boot": timestamp(BOOT, 0)}, "jobs": jobs, **changes}
    return {"meta": {"producer": "sonar", "version": "0.17.0"}, "data": {"type": "sample", "attributes": about}}


def rows_of(message: Message) -> list[dict[str, Any]]:
    return [dict(zip(message.rows, values, strict=True)) for values in zip(*message.rows.values(), strict=True)]


def read_rows(to: Reader, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the process message, which must be one that a server takes."""
    found = {message.collector: message for message in to.read(document).messages}["process"]
    assert isinstance(accept(encode(found)), Accepted)
    return rows_of(found)


def grown(*documents: dict[str, Any]) -> float:
    """CPU time counted over all intervals, the first sample's included."""
    return sum(gain.cpu for gain in gained(*documents))


def gained(*documents: dict[str, Any]) -> list[Gain]:
    to, before, found = reader(), dict[Ident, Total](), list[Gain]()
    for document in documents:
        after = {
            Ident(row["pid"], row["started"]): Total(
                row["parent"], row["cpu_user"] + row["cpu_system"], row["cpu_children"], row["read"], row["written"],
                row["merged"] is not None)
            for row in read_rows(to, document)
        }  # fmt: skip
        found += gains(before, after).values()
        before = after
    return found


# Back and forth


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_recorded_machine_comes_back_from_its_own_documents_within_their_rounding(machine: Path) -> None:
    sent = recorded(machine)
    made, to = translator(), reader()
    documents = [json.loads(sonar_line(document)) for message in sent for document in made.documents(message)]
    back = {message.collector: message for document in documents for message in to.read(document).messages}
    original = {message.collector: message for message in sent}
    for message in back.values():
        assert isinstance(accept(encode(message)), Accepted)
    wanted = {row["pid"]: row for row in rows_of(original["process"])}
    found = {row["pid"]: row for row in rows_of(back["process"])}
    assert found.keys() == wanted.keys()
    for pid, row in found.items():
        theirs = wanted[pid]
        used = theirs["cpu_user"] + theirs["cpu_system"] + theirs["cpu_children"]
        assert row["cpu_children"] == pytest.approx(used, abs=0.51)
        assert row["memory_anon"] == (theirs["memory_anon"] or 0) // 1024 * 1024
        assert (row["threads"], row["owner"]) == (theirs["threads"], theirs["owner"])
        assert row["parent"] == max(0, theirs["parent"])
        assert (row["state"] == "Z") == (theirs["state"] == "Z")
        if theirs["read"]:
            assert 0 <= row["read"] - theirs["read"] < 1024
    assert rows_of(back["load"]) == rows_of(original["load"])
    machine_back, machine_sent = rows_of(back["hardware"])[0], rows_of(original["hardware"])[0]
    assert machine_back["memory"] == machine_sent["memory"] // 1024 * 1024
    for name in ("model", "kernel", "architecture"):
        assert machine_back[name] == machine_sent[name]
    disks = {row["device"]: row for row in rows_of(back["disk"])} if "disk" in back else {}
    for row in rows_of(original["disk"]):
        assert disks[row["device"]] == pytest.approx(row)


def test_no_message_is_made_that_its_record_would_have_to_be_invented_for() -> None:
    system = {"boot": timestamp(BOOT, 0), "cpus": [5, 6], "used_memory": 1000}
    assert [m.collector for m in reader().read(sample(0.0, system=system)).messages] == ["process"]


# Values


def test_a_process_is_read_in_bytes_and_seconds_and_what_is_not_told_is_named() -> None:
    values = {"resident_memory": 3, "virtual_memory": 4, "num_threads": 2, "cpu_time": 9, "data_written": 5}
    (message,) = reader().read(sample(0.0, process(5, **values, in_container=True))).messages
    (row,) = rows_of(message)
    assert row | {
        "memory_anon": 3072, "memory_data": 4096, "threads": 3, "cpu_children": 9.0, "read": 0, "written": 5120,
        "container": "containerd", "scheduler": "slurm", "job": "7", "owner": "ann", "state": "?",
    } == row  # fmt: skip
    assert {"memory_virtual", "cpu_user", "cpu_system", "session"} <= message.missing.keys()
    assert message.uptime == UP


def test_traffic_that_may_have_been_unreadable_is_missing_and_not_zero() -> None:
    (row,) = read_rows(reader(), sample(0.0, process(5)))
    assert (row["read"], row["written"]) == (None, None)


@pytest.mark.parametrize(
    ("job", "epoch", "expected"),
    [(7, 0, ("slurm", "7", 0)), (7, EPOCH, ("session", "7", 7)), (0, 0, ("session", "5", 0))],
)
def test_a_number_with_an_epoch_counts_on_its_node_alone(
    job: int, epoch: int, expected: tuple[str, str, int]
) -> None:
    (row,) = read_rows(reader(), sample(0.0, process(5), job=job, epoch=epoch))
    assert (row["scheduler"], row["job"], row["process_group"]) == expected


@pytest.mark.parametrize(
    ("user", "expected"), [("ann", "ann"), ("_user_1234", "1234"), ("_user_unknown", "_user_unknown")]
)
def test_users_without_a_name_are_their_numbers(user: str, expected: str) -> None:
    jobs = [{"job": 7, "user": user, "processes": [process(5, cmd="sh <defunct>")]}]
    (row,) = read_rows(reader(), sample(0.0, jobs=jobs))
    assert (row["owner"], row["state"], row["command"]) == (expected, "Z", "sh")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sda1", True), ("nvme0n1p2", True), ("sda", False), ("nvme0n1", False), ("dm-10", False), ("sdb1", False)],
)
def test_partitions_are_told_by_their_names(name: str, expected: bool) -> None:
    assert part_of_another(name, {"sda", "nvme0n1", "dm-1", name}) is expected


# Who is who


def test_a_process_keeps_its_start_over_samples_and_over_readers() -> None:
    kept: dict[tuple[str, str], str] = {}
    starts = set()
    for after in (0.0, 300.0, 600.0):
        to = Reader(lambda cluster, node, kept=kept: kept.get((cluster, node)))  # type: ignore[misc]
        starts |= {row["started"] for row in read_rows(to, sample(after, process(5, cpu_time=int(after))))}
        kept |= to.changed()
    assert starts == {UP}


def test_what_was_used_before_a_node_was_met_is_not_counted() -> None:
    assert grown(sample(0.0, process(5, cpu_time=5000)), sample(300.0, process(5, cpu_time=5250))) == 250


def test_a_process_born_between_samples_is_counted_whole_and_started_after_the_first() -> None:
    first, second = sample(0.0), sample(300.0, process(5, cpu_time=100, cpu_avg=50.0))
    assert grown(first, second) == 100
    to = reader()
    to.read(first)
    assert read_rows(to, second)[0]["started"] == pytest.approx(UP + 100)  # 100 s at half a core: 200 s ago


def test_on_a_node_met_soon_after_its_boot_everything_can_be_dated() -> None:
    young = {"boot": timestamp(NOON - 600, 0)}
    (row,) = read_rows(reader(), sample(0.0, process(5, cpu_time=100, cpu_avg=20.0), system=young))
    assert (row["started"], row["merged"]) == (100.0, None)  # 100 s at a fifth of a core: 500 of 600 s


def test_a_parent_does_not_count_what_its_dead_child_was_counted_for() -> None:
    def pair(after: float, parent: int, child: int) -> dict[str, Any]:
        return sample(after, process(5, cpu_time=parent), process(6, ppid=5, cpu_time=child))

    ended = sample(900.0, process(5, cpu_time=590))
    assert grown(sample(0.0), pair(300.0, 0, 200), pair(600.0, 0, 500), ended) == 590


@pytest.mark.parametrize(("before", "child", "after"), [(6, 10, 15), (5, 10, 16), (6, 10, 16)])
def test_bytes_of_a_dead_child_are_counted_once_however_seconds_are_rounded(
    before: int, child: int, after: int
) -> None:
    """5.5 s and 9.5 s are 15.0 s, and rounded 6, 10 and 15."""
    found = gained(
        sample(0.0),
        sample(300.0, process(5, cpu_time=before), process(6, ppid=5, cpu_time=child, data_written=1000)),
        sample(600.0, process(5, cpu_time=after, data_written=1000)),
        sample(900.0, process(5, cpu_time=after + 100, data_written=1001)),
    )
    assert sum(gain.written or 0 for gain in found) == 1001 * 1024
    assert sum(gain.cpu for gain in found) == pytest.approx(after + 100, abs=1)


def test_a_number_used_again_is_another_process() -> None:
    to = reader()
    first = read_rows(to, sample(0.0, process(5, cpu_time=500)))[0]["started"]
    again = read_rows(to, sample(300.0, process(5, cpu_time=20)))[0]["started"]
    assert again > first
    assert grown(sample(0.0, process(5, cpu_time=500)), sample(300.0, process(5, cpu_time=20))) == 20


def test_a_process_that_comes_out_of_a_sum_is_not_counted_again() -> None:
    rolled = process(0, ppid=5, cpu_time=1000, rolledup=3)
    assert grown(sample(0.0, rolled), sample(300.0, process(9, ppid=5, cpu_time=400), process(0, ppid=5))) == 0


def test_leaves_without_a_number_are_told_apart_and_those_alike_are_added_up() -> None:
    leaves = [process(0, ppid=5, cpu_time=3), process(0, ppid=6, cpu_time=4), process(0, ppid=5, cpu_time=2)]
    found = read_rows(reader(), sample(0.0, *leaves))
    assert sorted((row["cpu_children"], row["merged"], row["threads"]) for row in found) == [(4, 0, 1), (5, 1, 2)]
    assert all(row["pid"] < 0 for row in found)


# Boots


def boots(*documents: dict[str, Any]) -> list[tuple[str, float]]:
    to = reader()
    found = [to.read(document).messages[0] for document in documents]
    return [(message.origin.boot, message.uptime) for message in found]


def booted(after: float, boot: float | None) -> dict[str, Any]:
    return sample(after, process(5), system={} if boot is None else {"boot": timestamp(boot, 0)})


def test_a_clock_that_is_set_is_no_reboot_and_a_reboot_is_one() -> None:
    name = f"sonar-{int(BOOT)}"
    moved = [booted(0.0, BOOT), booted(30.0, BOOT + 1), booted(60.0, BOOT - 3000), booted(9000.0, NOON + 8000)]
    found = boots(*moved)
    assert [boot for boot, _ in found] == [name, name, name, f"sonar-{int(NOON) + 8000}"]
    assert [uptime for _, uptime in found] == [UP, UP + 29, UP + 3060, 1000]


def test_before_boots_were_told_the_epoch_tells_them_and_otherwise_seconds_count_from_1970() -> None:
    told = sample(0.0, process(5), epoch=EPOCH, system={})
    assert boots(told) == [(f"sonar-{int(BOOT)}", UP)]
    assert boots(booted(0.0, None), booted(30.0, BOOT)) == [("sonar", NOON), ("sonar", NOON + 30)]


def test_a_sample_read_again_has_the_identity_it_had() -> None:
    documents = [booted(0.0, BOOT), booted(30.0, BOOT + 1), booted(9000.0, NOON + 8000)]
    once = boots(*documents)
    assert boots(*documents, *documents)[3:] == once


# Documents that are none


def test_documents_of_other_kinds_are_named_and_left_out() -> None:
    for kind, expected in (("job", "job"), ("jobs", "job"), ("cluster", "cluster")):
        assert reader().read({"data": {"type": kind, "attributes": {}}}) == Reading(expected, [])


def test_a_run_that_failed_is_kept_as_one_where_it_says_of_which_node() -> None:
    error = {"time": timestamp(NOON, 0), "cluster": "fox", "node": "n1", "detail": "cannot read /proc"}
    (message,) = reader().read({"errors": [error]}).messages
    assert (message.status, message.error, message.collector) == (Status.FAILED, "cannot read /proc", "process")
    assert isinstance(accept(encode(message)), Accepted)
    assert reader().read({"errors": [{"detail": "no more"}]}).messages == []


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "$"),
        ({"data": {"type": "weather"}}, "$.data.type"),
        ({"data": {}, "errors": []}, "$"),
        (sample(0.0, cluster=""), "$.data.attributes.cluster"),
        (sample(0.0, node=None), "$.data.attributes.node"),
        (sample(0.0, time="yesterday"), "$.data.attributes.time"),
        (sample(0.0, time=""), "$.data.attributes.time"),
        (sample(0.0, process("5")), "$.data.attributes.jobs[0].processes[0].pid"),  # type: ignore[arg-type]
        (sample(0.0, process(5, cpu_time=-1)), "$.data.attributes.jobs[0].processes[0].cpu_time"),
        (sample(0.0, process(5), process(5)), "$.data.attributes.jobs[0].processes[1].pid"),
        (sample(0.0, jobs=7), "$.data.attributes.jobs"),
    ],
)
def test_a_refusal_names_the_path(document: Any, path: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        reader().read(document)
    assert caught.value.path == path


def test_a_document_as_sonar_prints_it_for_kafka_is_unpacked() -> None:
    wrapped = {"topic": "fox.sample", "key": "n1", "client": "fox/n1", "value": sample(0.0, process(5))}
    assert reader().read(wrapped).kind == "sample"
    with pytest.raises(UnreadableError, match=r"\$\.value\.data\.attributes\.node"):
        reader().read({**wrapped, "value": sample(0.0, node="")})


def test_a_cluster_can_be_named_for_documents_that_name_none() -> None:
    (message,) = reader("hen").read(sample(0.0, process(5), cluster=None)).messages
    assert message.origin.cluster == "hen"


def _real_documents() -> list[str]:
    made = translator()
    found = [d for machine in MACHINES[:3] for message in recorded(machine) for d in made.documents(message)]
    return [sonar_line(document).decode() for document in found] + [json.dumps(sample(0.0, process(5, cpu_time=3)))]


DOCUMENTS = _real_documents()


def paths(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value with each of its keys."""
    keys = (
        list(value) if isinstance(value, dict) else list(range(min(3, len(value)))) if isinstance(value, list) else []
    )
    return [(value, key) for key in keys] + [found for key in keys for found in paths(value[key])]


STRANGE: list[Any] = [
    None,
    -1,
    0,
    2**70,
    1e300,
    float("nan"),
    "",
    "x" * 400,
    "\udcff\x00",
    True,
    [],
    {},
    [[]],
    {"a": 1},
    "2026-11-15",
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_mutated_document_is_read_or_refused_with_a_path_and_nothing_else_happens(
    text: str, data: st.DataObject
) -> None:
    document = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        places = paths(document)
        within, key = places[data.draw(st.integers(0, len(places) - 1))]
        within[key] = copy.deepcopy(data.draw(st.sampled_from(STRANGE)))
    to = reader()
    to.read(json.loads(DOCUMENTS[-1]))
    refusal, messages = None, []
    try:
        messages = to.read(document).messages
    except UnreadableError as error:
        refusal = error
    assert refusal is None or (refusal.path.startswith("$") and refusal.reason)
    for message in messages:
        accept(encode(message))
    for remembered in to.changed().values():
        json.loads(remembered)


def test_a_rolled_up_row_of_ours_comes_back_as_one() -> None:
    made = translator()
    rolled = {"scheduler": "slurm", "job": "7", "merged": 3, "threads": 10, "cpu_user": 8.0}
    (document,) = made.documents(processes(rolled))
    (row,) = read_rows(reader(), json.loads(sonar_line(document)))
    assert (row["merged"], row["threads"], row["cpu_children"], row["job"]) == (3, 10, 8.0, "7")
