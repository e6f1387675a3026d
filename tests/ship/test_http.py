"""What a server's answer says about messages it took and will not keep."""

import pytest

from jobsight.ship.http import refusals


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"accepted": 3, "refused": 2, "reasons": ["$.rows"]}', 2),
        (b'{"refused": 0, "reasons": []}', 0),
        (b'{"refused": -5, "reasons": []}', 0),
        (b"", 0),
        (b"thanks", 0),
        (b"[1]", 0),
        (b'{"refused": "many", "reasons": []}', 0),
        (b'{"refused": Infinity, "reasons": []}', 0),
        (b"[" * 60_000, 0),
    ],
)
def test_an_answer_that_makes_no_sense_refuses_nothing_and_ends_nobody(body: bytes, count: int) -> None:
    assert refusals(body)[0] == count
