"""The embedded engine's SQL in PostgreSQL's words."""

import pytest

from jobsight.store.dialect import translated


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = %s"),
        ("SELECT '?', 'it''s ?', '5 %' WHERE a % 2 = ?", "SELECT '?', 'it''s ?', '5 %%' WHERE a %% 2 = %s"),
        ("SELECT any_value(run.time - run.uptime) + a", "SELECT min(run.time - run.uptime) + a"),
        ("WHERE list_contains(?, node)", "WHERE node = ANY(%s)"),
        (
            "SELECT arg_max(a / b, t)",
            "SELECT (array_agg(a / b ORDER BY t DESC) FILTER (WHERE (a / b) IS NOT NULL AND t IS NOT NULL))[1]",
        ),
    ],
)
def test_what_our_queries_use_is_turned(written: str, meant: str) -> None:
    assert translated(written) == meant
