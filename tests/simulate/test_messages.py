"""The messages: what the server accepts, and what a kernel could have counted."""

from collections import defaultdict
from pathlib import Path

import pytest

from jobsight.analyse.keeper import open_store
from jobsight.formats import cpulist
from jobsight.ingest.accept import Accepted, accept, recall
from jobsight.schema.message import Message
from jobsight.simulate.card import name
from jobsight.simulate.cluster import Cluster, fill, line
from jobsight.simulate.outage import Faults
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import ALL, Sampling
from jobsight.store.protocol import JobQuery

EVERY = 400.0
WISH = Wish(seed=9, nodes=12, days=0.125)


@pytest.fixture(scope="module")
def heard() -> list[Message]:
    """All messages of three hours, of all collectors."""
    return list(Cluster(WISH, Sampling(every=EVERY, collectors=ALL, rollup=False)).messages())


def rows(message: Message) -> list[dict[str, object]]:
    names = list(message.rows)
    return [dict(zip(names, values, strict=True)) for values in zip(*message.rows.values(), strict=True)]


def test_the_server_accepts_every_message_as_it_is(heard: list[Message]) -> None:
    assert {message.collector for message in heard} == set(ALL)
    for message in heard:
        judged = accept(line(message))
        assert isinstance(judged, Accepted), judged
        recalled = recall(line(message))
        assert isinstance(recalled, Accepted)
        assert (recalled.identity, recalled.columns) == (judged.identity, judged.columns)


def test_a_seed_gives_the_same_bytes_every_time(heard: list[Message]) -> None:
    again = Cluster(WISH, Sampling(every=EVERY, collectors=ALL, rollup=False))
    assert [line(message) for message in again.messages()] == [line(message) for message in heard]


def test_made_in_slices_or_at_once_messages_are_the_same(heard: list[Message]) -> None:
    cluster = Cluster(WISH, Sampling(every=EVERY, collectors=ALL, rollup=False))
    parts = [line(m) for time in (WISH.begin + 1000, WISH.begin + 5000.5, None) for m in cluster.messages(time)]
    assert sorted(parts) == sorted(line(message) for message in heard)


def test_nodes_sample_at_seconds_of_their_own(heard: list[Message]) -> None:
    seconds = {(message.origin.node, round(message.time % EVERY, 3)) for message in heard}
    assert len(seconds) == len({node for node, _ in seconds}) == 12
    assert len({second for _, second in seconds}) > 9


def test_processes_add_up_to_their_group_but_for_a_tick_each(heard: list[Message]) -> None:
    groups = {
        (m.origin.node, m.time, row["job"]): row["cpu_time"]
        for m in heard
        if m.collector == "cgroup"
        for row in rows(m)
    }
    sums: dict[tuple[str, float, object], list[float]] = defaultdict(list)
    for message in heard:
        for row in rows(message) if message.collector == "process" else ():
            if row["scheduler"] == "slurm":
                used = float(str(row["cpu_user"])) + float(str(row["cpu_system"])) + float(str(row["cpu_children"]))
                sums[message.origin.node, message.time, row["job"]].append(used)
    assert len(sums) > 200
    for place, parts in sums.items():
        assert 0 <= float(str(groups[place])) - sum(parts) + 1e-6 <= 0.02 * len(parts) + 2e-6


def test_rolled_up_rows_have_everybodys_numbers() -> None:
    one, many = (
        Cluster(WISH, Sampling(every=600.0, collectors=("process",), rollup=rollup)).messages()
        for rollup in (True, False)
    )
    merged = 0
    for left, right in zip(one, many, strict=True):
        for column in ("cpu_user", "memory_anon", "threads", "read"):
            assert sum(left.rows.get(column, ())) == pytest.approx(sum(right.rows.get(column, ())), abs=1e-6)
        extra = [number for number in left.rows.get("merged", ()) if number]
        assert len(left.rows.get("pid", ())) + sum(extra) == len(right.rows.get("pid", ()))
        merged += len(extra)
    assert merged


def test_no_two_processes_of_a_node_share_a_number_and_none_began_after_it_was_seen(heard: list[Message]) -> None:
    for message in heard:
        if message.collector == "process" and message.rows:
            assert len(set(message.rows["pid"])) == len(message.rows["pid"])
            assert max(message.rows["started"]) <= message.uptime


def test_no_cpu_works_more_than_time_goes_by(heard: list[Message]) -> None:
    before: dict[tuple[str, str, int], float] = {}
    for message in heard:
        for row in rows(message) if message.collector == "cpu" else ():
            place = message.origin.node, message.origin.boot, int(str(row["cpu"]))
            idle = float(str(row["idle_time"]))
            assert idle >= before.get(place, 0.0) - 0.02
            before[place] = idle


def test_cards_compute_as_long_as_the_truth_says() -> None:
    cluster = Cluster(WISH, Sampling(every=60.0, collectors=("gpu",)))
    first: dict[str, tuple[float, float]] = {}
    last: dict[str, tuple[float, float]] = {}
    for message in cluster.messages():
        for row in rows(message):
            seen = message.time, float(str(row["busy"]))
            first.setdefault(str(row["uuid"]), seen)
            last[str(row["uuid"])] = seen
    expected = 0.0
    for truth in cluster.truths:
        for place in truth.places:
            for card in place.gpus:
                uuid = name(place.node.name, card)
                expected += place.curve.at(last[uuid][0]).gpu - place.curve.at(first[uuid][0]).gpu
    found = sum(last[uuid][1] - first[uuid][1] for uuid in last)
    assert found == pytest.approx(expected, rel=1e-6)
    assert found > 0


def test_the_accounting_ends_each_job_as_the_truth_does() -> None:
    cluster = Cluster(WISH, Sampling(every=60.0, collectors=("slurmjob",)))
    latest: dict[tuple[object, object], dict[str, object]] = {}
    for message in cluster.messages():
        for row in rows(message):
            if row["step"] is None:
                latest[row["job"], row["entry"]] = row
    lives = {(row["job"], row["start"]): row for row in latest.values()}
    jobs = [truth for truth in cluster.plan.seen() if truth.scheduler == "slurm"]
    last = cluster.plan.end - 60
    assert len(jobs) > 100
    for truth in jobs:
        if truth.start > last:
            continue
        row = lives[truth.number, truth.start]
        if truth.end <= last:
            assert row["state"] == truth.ending.state
            assert row["cpu_time"] == pytest.approx(truth.cpu_time, abs=1e-6)
            assert row["ended"] == truth.end
        elif truth.end > cluster.plan.end:
            assert (row["state"], row["cpu_time"]) == ("RUNNING", None)


def test_the_queue_names_the_cores_and_cards_that_were_given() -> None:
    cluster = Cluster(WISH, Sampling(every=60.0, collectors=("slurmqueue",)))
    given: dict[object, set[tuple[object, object]]] = defaultdict(set)
    for message in cluster.messages():
        for row in rows(message):
            if row["part"] == "given":
                given[row["job"]].add((row["cores"], row["devices"]))
    assert len(given) > 100
    checked = 0
    for truth in cluster.truths:
        if (
            truth.number in given
            and len(truth.places) == 1
            and not truth.restarts
            and truth.ending.state != "NODE_FAIL"
        ):
            ((cores, devices),) = given[truth.number]
            each = truth.places[0].node.make.cores // truth.places[0].node.make.sockets
            named = {
                int(socket) * each + core
                for socket, _, numbers in (part.partition(":") for part in str(cores).split())
                for core in cpulist.cpus(numbers)
            }
            assert named == set(truth.places[0].cores)
            assert (devices is None) == (not truth.places[0].gpus)
            checked += 1
    assert checked > 50


def test_lost_messages_cost_resolution_and_no_work(tmp_path: Path) -> None:
    cluster = Cluster(WISH._replace(faults=Faults(lost=0.3)), Sampling(every=300.0))
    store = open_store(str(tmp_path / "store"))
    try:
        arrived = fill(cluster, store)
        sql = "SELECT job, node, max(time) FROM cgroup GROUP BY ALL"
        last = {(job, node): time for job, node, time in store.query(sql)}
        jobs = store.jobs(JobQuery(limit=100_000, scheduler="slurm"), 4e9)
    finally:
        store.close()
    assert 0.25 < 1 - arrived / len(list(Cluster(WISH, Sampling(every=300.0)).messages())) < 0.35
    truths = {truth.number: truth for truth in cluster.truths if truth.scheduler == "slurm"}
    assert len(last) > 100
    for job in jobs:
        for part in job["parts"]:
            if part["source"] == "cgroup":
                expected = truths[job["id"]].at(part["node"], last[job["id"], part["node"]]).cpu
                assert part["cpu_time"] == pytest.approx(expected, rel=1e-6, abs=1e-5)
