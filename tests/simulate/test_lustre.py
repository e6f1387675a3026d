"""The simulated Lustre file system: what a kernel would do, and a truth that is kept."""

import re
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from jobsight.analyse.increment import Reading, increments
from jobsight.ingest.accept import Accepted, accept
from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from jobsight.simulate.cluster import Cluster
from jobsight.simulate.lustreclient import FORMAT, Client, Faults, identifier, states, torn
from jobsight.simulate.lustrefeed import Feed, Servers
from jobsight.simulate.lustretarget import WRAP, Meter, Target
from jobsight.simulate.lustretext import DIALECTS, render
from jobsight.simulate.lustretree import Tree
from jobsight.simulate.lustrework import invented
from jobsight.simulate.plan import Wish
from jobsight.simulate.sampler import Sampling

BEGIN = 1_767_571_200.0
HOURS = 4 * 3600.0


def feed(**wish: object) -> Feed:
    return Feed(Servers(**wish), invented(7, BEGIN, BEGIN + HOURS, 8, 6, 20))  # type: ignore[arg-type]


def test_an_idle_entry_goes_when_a_reader_closes_the_file_and_is_shown_that_once() -> None:
    target = Target("a-OST0000", "ost", 0.0)
    target.log(b"1:2:n", "write", 10.0, 5)
    assert [one.raw for one in target.read(400.0)] == [b"1:2:n"]
    assert [one.raw for one in target.read(620.0)] == [b"1:2:n"]
    # Swept at 400, so not again before 700.
    assert [one.raw for one in target.read(710.0)] == [b"1:2:n"]
    assert target.read(711.0) == []


def test_a_new_entry_sweeps_too_and_an_interval_of_nothing_never() -> None:
    target = Target("a-OST0000", "ost", 0.0)
    target.log(b"old", "write", 10.0)
    target.log(b"new", "write", 700.0)
    assert set(target.accounts) == {b"new"}
    target.set_interval(0.0, 700.0)
    target.read(90_000.0)
    assert set(target.accounts) == {b"new"}
    target.set_interval(5.0, 90_000.0)
    assert target.interval == 4.0


def test_meters_wrap_as_the_kernels_do() -> None:
    meter = Meter().plus(2**24, sized=True, times=70_000)
    assert meter.squares == 70_000 * 2**48 % WRAP < 70_000 * 2**48
    assert (meter.least, meter.most, meter.sizes[24]) == (2**24, 2**24, 70_000)


def test_identifiers_are_torn_as_they_are_seen_to_be() -> None:
    client = Client("r01c01", 17627127, "11317854", domain="bullx")
    assert identifier(FORMAT, client) == b"11317854:17627127:r01c01"
    found = {torn(FORMAT, client, Random(seed)) for seed in range(400)}
    assert found >= {
        b"11317854", b"11317854:", b"113178547", b"11317854:17627127", b"11317854:17627127:",
        b"11317854:17627127:r01c01.bullx", b":17627127:r01c01.bullx",
    }  # fmt: skip
    assert identifier(FORMAT, client) not in found
    assert all(len(state) <= 31 for state in states("%e:%u:%h", client._replace(host="x" * 40)))


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_prints_what_its_release_does(name: str) -> None:
    dialect = DIALECTS[name]
    target = Target("a-OST0000", "ost", BEGIN)
    target.log(b"17:1001:n1", "write", BEGIN + 0.5, 2**24, 3, 40)
    text = render(target.read(BEGIN + 1.0), "ost", dialect, BEGIN - 50.0).decode()
    assert ("start_time" in text) == dialect.start
    assert ("max:16777216" in text) == dialect.tight
    assert ("hist: { 16M: 3 }" in text) == dialect.sizes
    assert (r'"17\x3A1001\x3An1"' in text) == (dialect.quotes == "all")
    assert ('"17:1001:n1"' in text) == (dialect.quotes == "some")
    assert bool(re.search(r"^snapshot_time {3}: 50\.5", text, re.MULTILINE)) == (dialect.times == "boot")
    assert render([], "ost", dialect) == (b"job_stats:\n" if dialect.heading else b"")


def test_a_feed_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    first, second, third = (
        [encode(message) for message in feed(faults=Faults(), seed=seed).messages(BEGIN, BEGIN + 3600.0)]
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != third


def test_messages_are_accepted_and_each_scan_is_accounted_for() -> None:
    kinds: dict[str, int] = defaultdict(int)
    for message in feed(faults=Faults()).messages(BEGIN, BEGIN + HOURS):
        assert isinstance(accept(encode(message)), Accepted)
        kinds[message.collector] += 1
    assert set(kinds) == {"lustremdt", "lustreost", "lustrescan"}
    assert kinds["lustrescan"] == kinds["lustremdt"] + kinds["lustreost"]


def readings(messages: list[Message], operation: str) -> dict[tuple[str, str], list[Reading]]:
    found: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    for message in messages:
        if not message.rows or operation not in message.rows:
            continue
        wanted = ("target", "entry", operation, "start_time", "absent_at")
        for target, entry, value, start, absent in zip(*(message.rows[name] for name in wanted), strict=True):
            found[target, entry].append(Reading(message.time, (value,), start, absent))
    return found


@pytest.mark.parametrize("operation", ["write_bytes", "open"])
def test_increments_of_a_feed_are_the_work_that_was_done(operation: str) -> None:
    one = feed(faults=Faults())
    messages = list(one.messages(BEGIN, BEGIN + HOURS))
    found = readings([message for message in messages if message.collector != "lustrescan"], operation)
    first = {BEGIN, BEGIN + 120.0}
    counted = missed = 0
    for series in found.values():
        counted += sum(int(step.values[0] or 0) for step in increments(series))
        begun = min(series, key=lambda reading: reading.time)
        # Of what was there in the first scan nobody knows what was before.
        missed += int(begun.values[0] or 0) if begun.absent is None and begun.time in first else 0
    done = sum(
        work for target in one.targets for (_, name), work in target.work.items() if name == operation
    )  # fmt: skip
    assert done > 0
    assert counted + missed == done


def test_a_tree_follows_its_targets_from_server_to_server(tmp_path: Path) -> None:
    tree = Tree(tmp_path, DIALECTS["2.17"])
    target = Target("a-OST0000", "ost", BEGIN)
    tree.mount(target)
    tree.write(BEGIN)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {
        "proc/fs/lustre/obdfilter/a-OST0000/job_stats",
        "sys/fs/lustre/obdfilter/a-OST0000/job_cleanup_interval",
        "sys/kernel/debug/lustre/obdfilter/a-OST0000/stats",
    }
    tree.unmount(target)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_jobs_of_a_cluster_use_its_file_system_under_their_own_names() -> None:
    cluster = Cluster(Wish(seed=5, nodes=10, days=0.1), Sampling(600.0, ("load",)), Servers(osts=2))
    jobs = {truth.number for truth in cluster.truths}
    told = set()
    for message in cluster.messages():
        if message.collector == "lustreost":
            told |= set(message.rows.get("job", ()))
    assert told
    assert told <= jobs
