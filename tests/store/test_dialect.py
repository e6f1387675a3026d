"""The embedded engine's SQL in PostgreSQL's words."""

import pytest

from jobsight.store.dialect import bounded, translated


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = %s"),
        ("SELECT '?', 'it''s ?', '5 %' WHERE a % 2 = ?", "SELECT '?', 'it''s ?', '5 %%' WHERE a %% 2 = %s"),
        ("SELECT any_value(run.time - run.uptime) + a", "SELECT min(run.time - run.uptime) + a"),
        ("WHERE list_contains(?, node)", "WHERE node = ANY(%s)"),
        ("WHERE time IN (SELECT unnest(?))", "WHERE time = ANY(%s)"),
        (
            "SELECT arg_max(a / b, t)",
            "SELECT (array_agg(a / b ORDER BY t DESC) FILTER (WHERE (a / b) IS NOT NULL AND t IS NOT NULL))[1]",
        ),
    ],
)
def test_what_our_queries_use_is_turned(written: str, meant: str) -> None:
    assert translated(written) == meant


JOINED = "SELECT a FROM run JOIN usage USING (time), (SELECT b FROM usage) AS c JOIN job ON d"
PART = "{0} AS NOT MATERIALIZED (SELECT * FROM {0} WHERE time BETWEEN ? AND ?)"


@pytest.mark.parametrize(
    ("written", "meant", "times"),
    [
        ("SELECT 1", "SELECT 1", 0),
        ("SELECT memory FROM usage", f"WITH {PART.format('usage')} SELECT memory FROM usage", 1),
        (
            JOINED,
            f"WITH {PART.format('run')}, {PART.format('usage')} {JOINED}",
            2,
        ),
        (
            "\nWITH a AS (SELECT * FROM run) SELECT * FROM a",
            f"WITH {PART.format('run')}, a AS (SELECT * FROM run) SELECT * FROM a",
            1,
        ),
        ("WITH RECURSIVE a AS (SELECT * FROM run) SELECT 1", "WITH RECURSIVE a AS (SELECT * FROM run) SELECT 1", 0),
        ("SELECT * FROM other.run", "SELECT * FROM other.run", 0),
    ],
)
def test_a_query_of_a_time_sees_no_other(written: str, meant: str, times: int) -> None:
    assert bounded(written, {"run", "usage", "memory"}) == (meant, times)
