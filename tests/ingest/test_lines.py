"""Bodies cut into lines as they arrive."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobsight.ingest.lines import KEPT, Lines
from jobsight.schema.wire import compress


def cut(body: bytes, size: int, *, packed: bool, limit: int = 10_000) -> list[tuple[bytes, int]]:
    lines = Lines(packed=packed, limit=limit)
    found = [line for start in range(0, len(body), size) for line in lines.feed(body[start : start + size])]
    return found + lines.finish()


@given(
    st.lists(st.binary(min_size=1, max_size=50).filter(lambda b: b"\n" not in b and b.strip())), st.integers(1, 64)
)
def test_lines_come_out_whole_however_the_body_is_cut(lines: list[bytes], size: int) -> None:
    wanted = [(line, len(line)) for line in lines]
    assert cut(b"\n".join(lines), size, packed=False) == wanted
    members = b"".join(compress(line + b"\n") for line in lines)
    assert cut(members, size, packed=True) == wanted


def test_an_overlong_line_comes_as_its_head_and_its_length_and_its_neighbours_are_whole() -> None:
    body = b"first\n" + b"x" * 50_000 + b"\nlast\n"
    assert cut(body, 777, packed=False) == [(b"first", 5), (b"x" * KEPT, 50_000), (b"last", 4)]


def test_a_bomb_is_unpacked_in_small_pieces() -> None:
    body = compress(b"first\n" + bytes(50_000_000) + b"\nlast\n")
    assert [length for _, length in cut(body, 1000, packed=True)] == [5, 50_000_000, 4]


def test_a_torn_or_foreign_body_is_an_error() -> None:
    with pytest.raises(zlib.error):
        cut(compress(b"x" * 1000 + b"\n")[:-4], 100, packed=True)
    with pytest.raises(zlib.error):
        cut(b"this is no gzip", 100, packed=True)
