"""Parts of a whole, whoever cut it."""

import os
import random

import pytest

from jobsight.schema.wire import compress
from jobsight.ship.part import Part, cut, join, parse


def test_parts_in_any_order_and_of_several_cuts_make_the_whole() -> None:
    whole = os.urandom(10_000)
    chance = random.Random(4)
    for _ in range(50):
        first = list(cut(whole, chance.randint(500, 4000)))
        parts = first + list(cut(whole, chance.randint(500, 4000)))[: chance.randint(0, 4)]
        chance.shuffle(parts)
        assert join(parts) == whole
        missing = [part for part in parts if part.start != first[1].start]
        assert join(missing) in (None, whole)
    assert join(first[1:]) is None
    assert join(first[:-1]) is None
    assert join([]) is None


def test_parts_that_are_not_what_they_say_make_no_whole() -> None:
    first, second = cut(b"one of those and two of these", 15)
    assert join([first, second]) == b"one of those and two of these"
    assert join([first._replace(content=b"one of them ...."), second]) is None


def test_two_wholes_are_told_apart_even_if_they_cannot_be_packed_smaller() -> None:
    one, other = (next(cut(compress(os.urandom(3000)), 1000)) for _ in range(2))
    assert one.length == other.length
    assert one.whole != other.whole


def test_a_part_comes_back_as_it_went_out() -> None:
    part = next(cut(b"one", 2))
    assert parse(part.header(), b"on") == part == Part(part.checksum, 3, 0, b"on")


@pytest.mark.parametrize("header", [b"", b"x y z", b"00 3", b"00 3 0 0", b"00 3 -1", b"00 3 2", b"\xff 3 0"])
def test_what_is_no_part_is_said(header: bytes) -> None:
    with pytest.raises(ValueError, match="expected a part"):
        parse(header, b"on")
