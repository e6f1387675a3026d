"""Queries are written once, in the embedded engine's SQL; here they become PostgreSQL's. Pure.

Only what our queries use is turned: no parser of SQL. Two things have no rule and must be written so that both
engines take them: columns are named in GROUP BY, and a SELECT in FROM has a name.
"""

import re
from collections.abc import Collection
from functools import lru_cache

# Rows in which the value is missing do not count: neither engine's `arg_max` would give a missing one.
LATEST = r"(array_agg(\1 ORDER BY \2 DESC) FILTER (WHERE (\1) IS NOT NULL AND \2 IS NOT NULL))[1]"
RULES = (
    (re.compile(r"\barg_max\(([^(),]+), ([^(),]+)\)"), LATEST),
    # PostgreSQL has it from 16 on. Any will do, so the least does.
    (re.compile(r"\bany_value\(([^()]+)\)"), r"min(\1)"),
    (re.compile(r"\blist_contains\(\?, ([^(),]+)\)"), r"\1 = ANY(?)"),
    # The same, but as a list the planner finds its partitions and uses the index.
    (re.compile(r"\bIN \(SELECT unnest\(\?\)\)"), "= ANY(?)"),
)
# Texts in quotes stay as they are, but for the sign that the client reads.
MARKS = re.compile(r"'(?:[^']|'')*'|\?|%")

SOURCES = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)\b(?!\s*[(.])")
OWN = re.compile(r"\s*WITH\s+")
RECURSIVE = re.compile(r"\s*WITH\s+RECURSIVE\b")


@lru_cache(256)
def translated(sql: str) -> str:
    """`?` becomes the client's `%s`, functions PostgreSQL's own."""
    for rule, written in RULES:
        sql = rule.sub(written, sql)
    return MARKS.sub(lambda found: "%s" if found[0] == "?" else found[0].replace("%", "%%"), sql)


def bounded(sql: str, tables: Collection[str]) -> tuple[str, int]:
    """A query that sees rows of a time only, and how often it asks for the two ends of that, before all else. Each
    table is hidden by a part of it: the planner then looks at no partition of another time, of which there may be
    hundreds. Where this does not know the form, the query stays as it is.
    """
    named = sorted({table for table in SOURCES.findall(sql) if table in tables})
    if not named or RECURSIVE.match(sql):
        return sql, 0
    parts = [f"{table} AS NOT MATERIALIZED (SELECT * FROM {table} WHERE time BETWEEN ? AND ?)" for table in named]
    own = OWN.match(sql)
    rest = f", {sql[own.end() :]}" if own else f" {sql}"
    return f"WITH {', '.join(parts)}{rest}", len(named)
