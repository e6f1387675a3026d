"""In whatever order messages come, what is counted in the end is the same."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobsight.analyse.keeper import open_store
from jobsight.analyse.place import mark
from jobsight.analyse.recount import recount
from jobsight.store.embedded import Embedded
from jobsight.store.plan import DAY
from jobsight.store.protocol import JobQuery
from tests.analyse.history import START, History


@contextmanager
def opened() -> Iterator[Embedded]:
    with TemporaryDirectory() as path:
        store = open_store(str(Path(path) / "store"))
        try:
            yield store
        finally:
            store.close()


def counted(store: Embedded) -> tuple[list[Any], list[Any]]:
    """Usage rows and job documents. A job keeps the key it was first given, so jobs are named by their order here."""
    documents = store.jobs(JobQuery(limit=10**6), START)
    documents.sort(key=lambda job: (job["scheduler"], job["id"], job["scope"], job["started"]))
    names = {job["key"]: number for number, job in enumerate(documents)}
    columns = [name for name in store.hot.columns()["usage"] if name != "job_key"]
    rows = store.query(f"SELECT job_key, {', '.join(columns)} FROM usage")
    usage = sorted([(names[key], *rest) for key, *rest in rows], key=repr)
    return usage, [{**job, "key": names[job["key"]]} for job in documents]


def arrive(store: Embedded, lines: list[bytes], batches: int) -> None:
    for number in range(batches):
        store.append(lines[number * len(lines) // batches : (number + 1) * len(lines) // batches]).result(10)
        store.digest()


def in_order(lines: list[bytes]) -> tuple[list[Any], list[Any]]:
    with opened() as store:
        arrive(store, lines, 1)
        assert store.query("SELECT count(*) FROM late") == [(0,)]
        found = counted(store)
        # And counting again changes nothing.
        mark(store, 0.0, 3e9)
        recount(store)
        assert counted(store) == found
        return found


def disturbed(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """As networks, spools and people may bring them."""
    how = chance.choice(("shuffled", "delayed", "a node later", "the newer half first"))
    if how == "shuffled":
        found = chance.sample(lines, len(lines))
    elif how == "delayed":
        found = sorted(lines, key=lambda line: lines.index(line) + chance.choice((0, 0, 0, 30)) * chance.random())
    elif how == "a node later":
        found = sorted(lines, key=lambda line: json.loads(line)["node"] == "n0")
    else:
        found = lines[len(lines) // 2 :] + lines[: len(lines) // 2]
    return found + chance.sample(lines, 5)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**9))
def test_any_order_of_arrival_counts_the_same_in_the_end(seed: int) -> None:
    chance = random.Random(seed)
    lines = History(seed, samples=chance.choice((12, 40))).lines
    expected = in_order(lines)
    assert expected[0]
    with opened() as store:
        arriving = disturbed(lines, chance)
        half = chance.randrange(len(arriving))
        arrive(store, arriving[:half], chance.randint(1, 5))
        if chance.random() < 0.5:
            recount(store)
        if chance.random() < 0.5:
            store.compact(START + 2 * DAY, least=1)
        arrive(store, arriving[half:], chance.randint(1, 5))
        recount(store)
        assert store.query("SELECT count(*) FROM late") == [(0,)]
        assert counted(store) == expected
