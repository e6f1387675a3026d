"""Parts become messages; what does not is given up within bounds."""

import os
from itertools import count

import pytest

from jobsight.ingest.accept import LARGEST, Refused
from jobsight.ingest.assembly import Assembly, Record, part_of
from jobsight.schema.wire import compress
from jobsight.ship.part import Part, cut, join

HOLD = 100.0


def records(whole: bytes, size: int = 1000, offset: int = 0, partition: int = 0) -> list[Record]:
    numbers = count(offset)
    return [Record("t", partition, next(numbers), part.content, part.header()) for part in cut(whole, size)]


def noise(size: int) -> bytes:
    return os.urandom(size)


def test_what_came_whole_passes_through() -> None:
    record = Record("t", 0, 5, b"{}")
    assembly = Assembly()
    assert assembly.take(record, 0.0) is record
    assert assembly.reached([record]) == {("t", 0): 6}


def test_two_messages_at_once_in_one_partition_are_told_apart() -> None:
    one, other = noise(3000), noise(3000)
    assembly = Assembly()
    found = []
    first, second = records(compress(one)), records(compress(other), offset=10)
    for pair in zip(first, second, strict=True):
        found += [assembly.take(record, 0.0) for record in pair]
    assert [made.value for made in found if isinstance(made, Record)] == [one, other]
    assert [made for made in found if not isinstance(made, Record)] == [None] * (len(found) - 2)
    assert assembly.reached([*first, *second]) == {("t", 0): 10 + len(second)}


def test_brokers_hear_of_the_earliest_that_is_incomplete_in_each_partition() -> None:
    assembly = Assembly()
    some = [*records(compress(noise(3000)), offset=20)[:1], *records(compress(noise(3000)), offset=10)[:2]]
    other = Record("t", 1, 7, b"{}")
    for record in [*some, other]:
        assembly.take(record, 0.0)
    assert assembly.reached([*some, other]) == {("t", 0): 10, ("t", 1): 8}


def test_what_is_incomplete_for_too_long_is_given_up_and_can_be_joined_later() -> None:
    whole = compress(noise(3000))
    parts = records(whole)
    assembly = Assembly(HOLD)
    assembly.take(parts[0], 0.0)
    assembly.take(parts[1], HOLD)
    assert assembly.reached(parts[:2]) == {("t", 0): 0}
    assert not assembly.overdue(2 * HOLD)
    assembly.renew(2 * HOLD)
    assert not assembly.overdue(3 * HOLD)
    assert assembly.overdue(3 * HOLD + 1)
    gone = assembly.given_up(3 * HOLD + 1)
    # Nothing new was read, and yet the brokers are told that we are past it.
    assert assembly.reached([]) == {("t", 0): 2}
    assembly.take(parts[-1], 0.0)
    gone += assembly.given_up(HOLD + 1)
    found = [part for refused in gone if (part := part_of(refused.line))]
    assert len(found) == 3
    assert join([*found, *(Part(*found[0].whole, r.offset * 1000, r.value) for r in parts)]) == whole


def test_the_oldest_go_when_there_is_too_much() -> None:
    assembly = Assembly(HOLD, bound=5500)
    wholes = [compress(noise(3000)) for _ in range(4)]
    for number, whole in enumerate(wholes):
        assembly.take(records(whole, 2000)[0], float(number))
    gone = assembly.given_up(5.0)
    found = [part for refused in gone if (part := part_of(refused.line))]
    assert [part.content for part in found] == [wholes[0][:2000], wholes[1][:2000]]


def test_a_part_read_twice_counts_once() -> None:
    assembly = Assembly(HOLD, bound=5500)
    part = records(compress(noise(3000)), 2000)[0]
    for _ in range(100):
        assembly.take(part, 0.0)
    assert assembly.given_up(0.0) == []
    assert assembly.reached([part]) == {("t", 0): 0}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record("t", 0, 0, b"x", b"nonsense"), "expected a part's checksum"),
        (Record("t", 0, 0, b"", b"00 1 0"), "expected a part within its whole"),
        (Record("t", 0, 0, b"x", b"00 %d 0" % 10**12), "more than"),
        (records(b"not gzip at all")[0], "not gzip"),
        (records(compress(b"x" * (LARGEST + 1)), 2**20)[0], "parts of more than"),
        (records(compress(b"abc" * 50)[:-4])[0], "ends in the middle"),
    ],
)
def test_hostile_parts_are_refused(record: Record, reason: str) -> None:
    found = Assembly().take(record, 0.0)
    assert isinstance(found, Refused)
    assert reason in found.reason
    assert "(t, partition 0, offset 0)" in found.reason
