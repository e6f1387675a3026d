"""Lustre: what is printed is what is read, in every dialect; and no work is lost or made up."""

import string
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobsight.analyse.increment import Reading, increments
from jobsight.collector import ParseError
from jobsight.formats.lustreentry import Entry, identifier, parse
from jobsight.formats.lustreshape import Parser
from jobsight.formats.lustrestats import Cutter, totals
from jobsight.simulate.lustretarget import BYTES, OPERATIONS, Account, Meter, Target
from jobsight.simulate.lustretext import DIALECTS, Dialect, render, size_of, stats
from tests.drivers.lustreserver import BEGIN, EVERY, Hands, Server, rows, scan

T = "scratch-OST0000"
SOME = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@st.composite
def accounts(draw: st.DrawFn, kind: str) -> list[Account]:
    raws = st.one_of(
        st.from_regex(rb"[0-9]{0,8}:[0-9]{1,8}:[a-z0-9.]{1,12}", fullmatch=True), st.binary(min_size=1, max_size=31)
    )
    made = []
    for raw in draw(st.lists(raws, min_size=0, max_size=5, unique=True)):
        account = Account(raw, BEGIN + draw(st.integers(0, 10**6)) / 1000)
        account.latest = account.start + draw(st.integers(0, 10**6)) / 1000
        for name in draw(st.lists(st.sampled_from(OPERATIONS[kind]), unique=True)):
            meter = Meter()
            for amount in draw(st.lists(st.integers(0, 2**31), min_size=1, max_size=4)):
                meter = meter.plus(amount, sized=name in BYTES, times=draw(st.integers(1, 10**6)))
            account.meters[name] = meter
        made.append(account)
    return made


def carried(raw: bytes, dialect: Dialect) -> bytes:
    """What is left of an identifier where a server prints a question mark for what it cannot."""
    if dialect.quotes != "none":
        return raw
    plain = bytes(byte if 0x20 <= byte < 0x7F or byte >= 0xA0 else 0x3F for byte in raw)
    # In its own quotes it reads as one that the server quoted.
    return identifier(b" " * 10 + plain)


def check(account: Account, entry: Entry, kind: str, dialect: Dialect) -> None:
    assert entry.raw == carried(account.raw, dialect)
    assert entry.bad == 0
    wall = {"whole": float(int(account.latest)), "boot": None, "exact": account.latest}[dialect.times]
    assert entry.snapshot == wall
    assert entry.start == (account.start if dialect.start and dialect.times == "exact" else None)
    found = entry.operations
    assert list(found) == list(dialect.operations(kind))
    for name, one in found.items():
        meter = account.meters.get(name, Meter())
        assert one.samples == meter.samples
        sized = name in BYTES and one.unit == "bytes"
        assert one.total == (meter.total if sized or dialect.usecs else None)
        sizes = ",".join(f"{size_of(power)}={count}" for power, count in enumerate(meter.sizes) if count)
        assert one.sizes == (sizes if sized and dialect.sizes else None)


@SOME
@given(st.data(), st.sampled_from(["mdt", "ost"]), st.sampled_from(sorted(DIALECTS)), st.integers(1, 5000))
def test_what_is_printed_is_what_is_read_as_far_as_the_dialect_carries_it(
    data: st.DataObject, kind: str, name: str, size: int
) -> None:
    dialect = DIALECTS[name]
    made = data.draw(accounts(kind))
    text = render(made, kind, dialect, booted=BEGIN - 5000.0)
    cutter, parser = Cutter(), Parser()
    found = list(cutter.entries(text[at : at + size] for at in range(0, len(text), size)))
    assert (len(found), cutter.torn, cutter.size) == (len(made), 0, len(text))
    for account, one in zip(made, found, strict=True):
        check(account, parser.parse(one), kind, dialect)
        assert parser.parse(one) == parse(one)


@SOME
@given(st.data(), st.sampled_from(sorted(DIALECTS)))
def test_mutated_text_raises_nothing_but_the_parsers_own_error(data: st.DataObject, name: str) -> None:
    text = bytearray(render(data.draw(accounts("ost")), "ost", DIALECTS[name], BEGIN - 5000.0))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(
            st.one_of(st.binary(max_size=6), st.sampled_from([b"9" * 5000, b"{", b"}", b"\n", b"- job_id:"]))
        )
        text[at : at + data.draw(st.integers(0, 40))] = piece
    parser = Parser()
    with suppress(ParseError):
        for one in Cutter().entries([bytes(text)]):
            assert _same(parser, one)
    with suppress(ParseError):
        totals(text.decode("utf-8", "backslashreplace"))


def _same(parser: Parser, one: bytes) -> bool:
    """Quick or slow, it says the same or fails alike."""
    said: list[Any] = []
    for way in (parser.parse, parse):
        try:
            said.append(way(one))
        except ParseError as error:
            said.append(str(error))
    return bool(said[0] == said[1])


@given(st.integers(1, 5), st.data())
def test_totals_of_a_target_are_what_its_entries_did(count: int, data: st.DataObject) -> None:
    target = Target(T, "ost", BEGIN)
    for _ in range(count):
        raw = data.draw(st.sampled_from([b"1:2:a", b"2:2:b"]))
        target.log(
            raw, data.draw(st.sampled_from(["read", "write", "sync"])), BEGIN, data.draw(st.integers(0, 10**9))
        )
    found = totals(stats(target, BEGIN).decode())
    for name, one in found.items():
        done = sum(work for (_, operation), work in target.work.items() if operation == name)
        assert done == (one.total if name in BYTES else one.samples)


JOBS = [letter.encode() + b".1001" for letter in string.ascii_lowercase[:4]]
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(JOBS), st.integers(1, 1000)),
    st.tuples(st.just("scan"), st.sampled_from(["good", "good", "good", "lost", "failed", "torn", "skip", "twice"])),
    st.tuples(st.just("idle"), st.integers(1, 12)),
    st.tuples(st.sampled_from(["restart", "clear", "failover"])),
)


class History:
    """A server through good and bad days, and the readings that arrive."""

    def __init__(self, dialect: str, folder: Path) -> None:
        self.hands = Hands()
        self.folder = folder
        self.dialect = dialect
        self.target = Target(T, "ost", BEGIN - 9000.0)
        self.readings: dict[str, list[Reading]] = defaultdict(list)
        # By entry: the beginning of the life that each good scan saw, and how far it had come.
        self.seen: dict[bytes, list[tuple[float, int, int] | None]] = defaultdict(list)
        self.server = self._server()
        self.other = self._server("other")

    def _server(self, name: str = "one") -> Server:
        made = Server(self.hands, self.folder / name, self.dialect)
        made.mount(self.target)
        return made

    def scan(self, how: str) -> None:
        self.hands.passed += EVERY
        server = self.server
        server.broken = {T: OSError(5, "Input/output error")} if how == "failed" else {}
        server.cut = {T: 30} if how == "torn" and self.target.accounts else {}
        server.skip = {T: 0} if how == "skip" else {}
        self._note()
        message = scan(server)
        for row in rows(message) if how != "lost" else []:
            values = (row["write"], row["write_bytes"])
            one = Reading(message.time, values, row["start_time"], row["absent_at"])
            self.readings[row["entry"]] += [one] * (2 if how == "twice" else 1)

    def step(self, step: tuple[Any, ...]) -> None:
        if step[0] == "write":
            self.target.log(step[1], "write", self.hands.wall() + EVERY / 2, step[2])
        elif step[0] == "scan":
            self.scan(step[1])
        elif step[0] == "idle":
            for _ in range(step[1]):
                self.scan("good")
        elif step[0] == "clear":
            self.target.clear()
        elif step[0] == "failover":
            self.target.mount(self.hands.wall())
            self.server, self.other = self.other, self.server
        else:
            self.server = self._server()

    def _note(self) -> None:
        for raw in JOBS:
            found = self.target.accounts.get(raw)
            meters = found.meters if found else {}
            counts = (meters["write"].samples, meters["write_bytes"].total) if meters else (0, 0)
            self.seen[raw].append((found.start, *counts) if found else None)

    def hidden(self, raw: bytes) -> tuple[int, int]:
        """What was lost by design: an entry that ended and began again between two scans, and came further than it
        had been, looks as if it had gone on.
        """
        writes = size = 0
        for old, new in pairwise(self.seen[raw]):
            if old and new and old[0] != new[0] and new[1] >= old[1] and new[2] >= old[2]:
                writes, size = writes + old[1], size + old[2]
        return writes, size

    def grown(self, raw: bytes) -> tuple[int, int]:
        """The sum of all increments of an entry: writes and bytes."""
        found = [one.values for one in increments(self.readings[raw.decode()])]
        return tuple(sum(int(value[at] or 0) for value in found) for at in (0, 1))  # type: ignore[return-value]


def lived(steps: list[tuple[Any, ...]], dialect: str) -> History:
    with TemporaryDirectory() as folder:
        history = History(dialect, Path(folder))
        history.scan("good")
        for step in steps:
            history.step(step)
        history.scan("good")
        history.scan("good")
    return history


@SOME
@given(st.lists(STEPS, max_size=25), st.sampled_from(["2.12", "2.15.0", "2.16", "2.17"]))
def test_no_work_is_made_up_whatever_happens(steps: list[tuple[Any, ...]], dialect: str) -> None:
    history = lived(steps, dialect)
    for raw in JOBS:
        writes, size = history.grown(raw)
        assert writes <= history.target.work.get((raw, "write"), 0)
        assert size <= history.target.work.get((raw, "write_bytes"), 0)


CALM = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(JOBS), st.integers(1, 1000)),
    st.tuples(st.just("scan"), st.sampled_from(["good", "twice"])),
    st.tuples(st.just("idle"), st.integers(1, 12)),
)


def done(history: History, raw: bytes) -> tuple[int, int]:
    found = [history.target.work.get((raw, name), 0) for name in ("write", "write_bytes")]
    return found[0], found[1]


@SOME
@given(st.lists(CALM, max_size=25), st.sampled_from(["2.15.2", "2.16"]), st.data())
def test_with_start_times_all_work_is_counted_though_every_second_message_is_lost(
    steps: list[tuple[Any, ...]], dialect: str, data: st.DataObject
) -> None:
    spaced: list[tuple[Any, ...]] = []
    for step in steps:
        spaced.append(step)
        if step[0] == "scan" and data.draw(st.booleans()):
            spaced += [("scan", "lost"), ("scan", "good")]
    history = lived(spaced, dialect)
    for raw in JOBS:
        assert history.grown(raw) == done(history, raw)


@SOME
@given(st.lists(CALM, max_size=25), st.sampled_from(["2.12", "2.14", "2.15.0"]))
def test_without_start_times_all_work_is_counted_but_what_is_hidden(
    steps: list[tuple[Any, ...]], dialect: str
) -> None:
    history = lived(steps, dialect)
    for raw in JOBS:
        (writes, size), (lost_writes, lost_size) = done(history, raw), history.hidden(raw)
        assert history.grown(raw) == (writes - lost_writes, size - lost_size)


def test_a_naive_difference_loses_what_we_do_not() -> None:
    """The first interval of every life, and what was counted before a fall that other counters hide."""
    steps = [("write", JOBS[0], 500), ("idle", 9), ("write", JOBS[0], 300), ("scan", "good"), ("write", JOBS[0], 7)]
    history = lived(steps, "2.16")
    values = [reading.values[1] or 0 for reading in history.readings[JOBS[0].decode()]]
    naive = sum(max(0, int(after - before)) for before, after in pairwise(values))
    assert history.grown(JOBS[0])[1] == 807
    assert naive == 7
