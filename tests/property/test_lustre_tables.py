"""A simulated file system whose truth is known, through the real store: nothing is lost but by design.

What its targets did before they were first read cannot be known. Everything after that must be in the tables, however
messages were lost, doubled or delayed on the way: an entry that goes was told of several times before.
"""

import random
from pathlib import Path

import pytest

from jobsight.analyse.increment import Reading, increments
from jobsight.analyse.keeper import open_store
from jobsight.analyse.lustreroll import roll
from jobsight.schema.message import Message
from jobsight.simulate.cluster import line
from jobsight.simulate.lustrefeed import Feed, Servers
from jobsight.simulate.lustretarget import BYTES
from jobsight.simulate.lustrework import invented
from jobsight.store.embedded import Embedded

BEGIN = 1_794_700_800.0
HOURS = 1.5
OPERATIONS = {"ost": ("read", "write", "read_bytes", "write_bytes"), "mdt": ("open", "close", "getattr", "unlink")}


def truth(feed: Feed) -> dict[tuple[str, str], int]:
    """What targets have done by now."""
    found = {}
    for target in feed.targets:
        for name in OPERATIONS[target.kind]:
            meter = target.totals.get(name)
            if meter is not None:
                found[target.name, name] = meter.total if name in BYTES else meter.samples
    return found


def counted(store: Embedded, table: str) -> dict[tuple[str, str], int]:
    names = sorted({name for some in OPERATIONS.values() for name in some})
    rows = store.query(f"SELECT target, {', '.join(f'sum({name})' for name in names)} FROM {table} GROUP BY target")
    return {(row[0], name): int(value or 0) for row in rows for name, value in zip(names, row[1:], strict=True)}


def by_the_law(messages: list[Message]) -> dict[tuple[str, str], int]:
    """What can be known from messages, one entry after the other."""
    readings: dict[tuple[str, str, str], list[Reading]] = {}
    for message in messages:
        kind = message.collector.removeprefix("lustre")
        columns = message.rows if kind in OPERATIONS else {}
        for place, target in enumerate(columns.get("target", ())):
            values = tuple(columns[name][place] for name in OPERATIONS[kind])
            life = columns["start_time"][place], columns["absent_at"][place]
            entry = (kind, target, columns["entry"][place])
            readings.setdefault(entry, []).append(Reading(message.time, values, *life))
    found: dict[tuple[str, str], int] = {}
    for (kind, target, _), some in readings.items():
        for item in increments(some):
            for name, value in zip(OPERATIONS[kind], item.values, strict=True):
                found[target, name] = found.get((target, name), 0) + int(value or 0)
    return found


def told(store: Embedded, messages: list[Message]) -> None:
    store.append([line(message) for message in messages]).result(30)
    store.digest()
    roll(store)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "start"), [(1, True), (2, False)])
def test_tables_have_all_that_was_done_after_the_first_scan(tmp_path: Path, seed: int, start: bool) -> None:
    feed = Feed(
        Servers(start=start, seed=seed), invented(seed, BEGIN, BEGIN + HOURS * 3600, users=8, nodes=6, jobs=24)
    )
    store = open_store(str(tmp_path / "store"))
    chance = random.Random(seed)
    first = list(feed.messages(BEGIN, BEGIN + 120))
    before = truth(feed)
    told(store, first)
    rest = list(feed.messages(BEGIN + 120, BEGIN + HOURS * 3600))
    # Of these every twentieth is lost, but for the last ones: what nobody told nobody can count.
    kept = [message for message in rest if chance.random() > 0.05 or message.time > BEGIN + HOURS * 3600 - 700]
    mixed = [*kept, *chance.sample(kept, 20)]
    chance.shuffle(mixed)
    for begin in range(0, len(mixed), 80):
        told(store, mixed[begin : begin + 80])
    after = truth(feed)
    done = {key: after[key] - before.get(key, 0) for key in after}
    seen = by_the_law([*first, *kept])
    for table in ("lustreslice", "lustretotal", "lustreshare"):
        found = counted(store, table)
        for key, amount in done.items():
            assert found[key] == seen.get(key, 0), (table, key)
            # Without a time of beginning an entry may come back with as much as before: work is missing, never more.
            assert found[key] == amount if start else found[key] <= amount, (table, key)
    store.close()
