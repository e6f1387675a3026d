"""Tables derived from records: the same columns, in the dialect of each engine."""

from typing import Any

from jobsight.schema.record import Field, fields_of
from jobsight.schema.units import base

# What every row carries besides its record's own fields.
STAMP = {"cluster": str, "node": str, "boot": str, "time": float}

DUCKDB = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR", bool: "BOOLEAN"}
POSTGRES = {int: "bigint", float: "double precision", str: "text", bool: "boolean"}

# Words that SQL keeps for itself in either engine and that a column of ours could plausibly want.
# DuckDB lists its own in duckdb_keywords(); the test asks it. PostgreSQL's are from its manual, appendix C.
POSTGRES_RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric authorization between binary both case cast check collate
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like
    limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
    references returning right select session_user similar some symmetric system_user table tablesample then to
    trailing true union unique user using variadic verbose when where window with""".split()  # noqa: SIM905
)


def column(field: Field, types: dict[type, str]) -> str:
    """`threads BIGINT NOT NULL`."""
    return f"{field.name} {types[base(field.unit)]}{'' if field.optional else ' NOT NULL'}"


def create(name: str, record: type[Any], types: dict[type, str] = DUCKDB) -> str:
    """The table of a record. `time` is seconds since 1970: one meaning in every engine and every client."""
    stamp = [f"{column} {types[kind]} NOT NULL" for column, kind in STAMP.items()]
    own = [column(field, types) for field in fields_of(record)]
    return f"CREATE TABLE IF NOT EXISTS {name} (\n  " + ",\n  ".join(stamp + own) + "\n)"


def additions(name: str, record: type[Any], present: set[str], types: dict[type, str] = DUCKDB) -> list[str]:
    """What brings an older table up to date. Only nullable columns may have been added."""
    return [
        f"ALTER TABLE {name} ADD COLUMN {field.name} {types[base(field.unit)]}"
        for field in fields_of(record)
        if field.name not in present
    ]
