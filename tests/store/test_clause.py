"""Views put into a statement's own WITH clause."""

import duckdb
import pytest

from jobsight.store.clause import within

VIEWS = {"near": "SELECT 1 AS n UNION ALL SELECT 2", "far": "SELECT 3 AS n"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(n) FROM near", [(3,)]),
        ("SELECT sum(near.n) + max(far.n) FROM near, far", [(6,)]),
        ("\n  WITH twice AS (SELECT 2 * n AS m FROM near) SELECT sum(m) FROM twice", [(6,)]),
        ("with far AS (SELECT 7 AS m) SELECT m FROM far", None),
        (
            "WITH RECURSIVE a AS (SELECT n FROM far UNION ALL SELECT n + 1 FROM a WHERE n < 5) FROM a",
            [(3,), (4,), (5,)],
        ),
        ("SELECT withal FROM (SELECT n AS withal FROM far) AS one", [(3,)]),
    ],
)
def test_a_statement_sees_the_views_beside_what_it_names_itself(sql: str, expected: list[tuple[int]] | None) -> None:
    with duckdb.connect() as engine:
        if expected is None:
            # Two of one name are refused, and never one of them taken in silence.
            with pytest.raises(duckdb.Error, match=r"(?i)duplicate"):
                engine.execute(within(sql, VIEWS))
        else:
            assert engine.execute(within(sql, VIEWS)).fetchall() == expected


def test_a_statement_that_names_no_table_stays_as_it_is() -> None:
    assert within("SELECT 1", {}) == "SELECT 1"
