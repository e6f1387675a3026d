"""Views for one statement only, in its own WITH clause: to make and to bind them apart takes longer than most
questions about one job. Pure.
"""

import re
from collections.abc import Mapping

# What a statement may begin with that has such a clause of its own.
OWN = re.compile(r"\s*WITH\b(\s+RECURSIVE\b)?", re.IGNORECASE)


def within(sql: str, views: Mapping[str, str]) -> str:
    """A statement that sees views, SQL by name. They are looked through, not made whole: a question about one job
    must not read everybody's rows because it names a table twice.
    """
    if not views:
        return sql
    named = ", ".join(f"{name} AS NOT MATERIALIZED ({view})" for name, view in views.items())
    own = OWN.match(sql)
    if own is None:
        return f"WITH {named} {sql}"
    return f"WITH{own[1] or ''} {named}, {sql[own.end() :]}"
