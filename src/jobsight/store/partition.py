"""How time-series tables are cut by time: TimescaleDB's chunks where there is TimescaleDB, else a partition a day.

`time` is seconds since 1970 in both. Retention drops whole days.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar, Protocol

import psycopg

from jobsight.store.pool import Connection, connect, said

DAY = 86400
# Days that get a partition: messages come late, and clocks go wrong. What is further away shares one.
PAST, FUTURE = 400, 2
# What is small and kept for years is cut into longer pieces (days): thousands of partitions make every plan slow.
LONG = {"slice_row": 30, "share_row": 30, "tally_row": 30, "capacity_row": 30, "stint_row": 30}
LONG |= dict.fromkeys(("lustretotal_row", "lustreshare_row", "lustredensity_row", "lustreseries_row"), 30)
# Making or dropping a partition stops readers for a moment. If it cannot be had soon it is left for the next time.
PATIENCE = "SET LOCAL lock_timeout = '10s'"


class Cut(Protocol):
    """One way to cut tables."""

    kind: ClassVar[str]

    def create(self, connection: Connection, table: str, statement: str, by: str) -> None:
        """Make a table whose rows are looked up by that column and the time."""

    def ready(self, connection: Connection, wanted: Iterable[tuple[str, float]], now: float) -> None:
        """See to it that rows of these tables and times have a place."""

    def pack(self, connection: Connection, tables: Iterable[str], now: float) -> None:
        """Make what is over smaller."""

    def forget(self, connection: Connection, table: str, before: float) -> int:
        """Drop days that ended before that, in the transaction that is open; how many rows."""

    def edge(self, table: str, before: float) -> float:
        """All rows older than this are gone after `forget`, and none that is younger."""

    def report(self) -> str:
        """The choice in words."""


def indexes(table: str, by: str) -> list[str]:
    """BRIN is next to nothing in size and finds a time once it has been told of the rows, which must not wait for the
    next vacuum. The other finds one series' or one node's rows.
    """
    return [
        f"CREATE INDEX IF NOT EXISTS {table}_time ON {table} USING brin (time) WITH (autosummarize = on)",
        f"CREATE INDEX IF NOT EXISTS {table}_{by} ON {table} ({by}, time)",
    ]


class Partitions:
    """PostgreSQL's own range partitions."""

    kind: ClassVar[str] = "partitions"

    def __init__(self, why: str = "") -> None:
        self._why = why
        self._known: set[tuple[str, int]] | None = None

    def report(self) -> str:
        return f"rows are kept in a partition a day{f': {self._why}' if self._why else ''}"

    def create(self, connection: Connection, table: str, statement: str, by: str) -> None:
        connection.execute(f"{statement} PARTITION BY RANGE (time)")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table}_other PARTITION OF {table} DEFAULT")
        for line in indexes(table, by):
            connection.execute(line)

    def ready(self, connection: Connection, wanted: Iterable[tuple[str, float]], now: float) -> None:
        if self._known is None:
            self._known = days(connection)
        today = int(now // DAY)
        near = {(table, int(time // DAY)) for table, time in wanted}
        # Tomorrow's are made today, so that midnight is an hour like any other.
        near |= {(table, today + 1) for table, day in near if day == today}
        begins = {(table, _begin(table, day)) for table, day in near if today - PAST <= day <= today + FUTURE}
        for table, day in sorted(begins - self._known):
            _make(connection, table, day)
            self._known.add((table, day))

    def pack(self, connection: Connection, tables: Iterable[str], now: float) -> None:
        """PostgreSQL has nothing for it."""

    def forget(self, connection: Connection, table: str, before: float) -> int:
        edge = self.edge(table, before)
        old = [day for name, day in days(connection) if name == table and day * DAY < edge]
        self._known = None
        connection.execute(PATIENCE)
        gone = sum(_counted(connection, _name(table, day)) for day in old)
        for day in old:
            connection.execute(f"DROP TABLE {_name(table, day)}")
        return gone + connection.execute(f"DELETE FROM {table}_other WHERE time < %s", [before]).rowcount

    def edge(self, table: str, before: float) -> float:
        return float(_begin(table, int(before // DAY)) * DAY)


def _begin(table: str, day: int) -> int:
    """The first day of the partition that has this one."""
    width = LONG.get(table, 1)
    return day // width * width


def days(connection: Connection) -> set[tuple[str, int]]:
    """The partitions there are: table and first day since 1970."""
    rows = connection.execute(
        "SELECT parent.relname, child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
        "JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relkind = 'p' "
        "AND parent.relnamespace = current_schema()::regnamespace"
    )
    found = set()
    for table, name in rows:
        day = name.removeprefix(f"{table}_")
        if len(day) == 8 and day.isdecimal():
            found.add((table, int(datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).timestamp()) // DAY))
    return found


def _name(table: str, day: int) -> str:
    return f"{table}_{datetime.fromtimestamp(day * DAY, UTC):%Y%m%d}"


def _counted(connection: Connection, table: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(found[0]) if found else 0


def _make(connection: Connection, table: str, day: int) -> None:
    """Fill first, attach then: what a wrong clock had put with the others would otherwise be in the way."""
    name, since, until = _name(table, day), day * DAY, (day + LONG.get(table, 1)) * DAY
    with connection.transaction():
        connection.execute(PATIENCE)
        connection.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS)")
        connection.execute(
            f"WITH moved AS (DELETE FROM {table}_other WHERE time >= {since} AND time < {until} RETURNING *) "
            f"INSERT INTO {name} SELECT * FROM moved"
        )
        connection.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({since}) TO ({until})")


class Hypertables:
    """TimescaleDB's. Its own policies want a column of a time type and fail on ours, so we call what they call."""

    kind: ClassVar[str] = "hypertables"

    def __init__(self, *, compressing: bool) -> None:
        # The edition under the Apache licence has no compression. It is a store all the same.
        self._compressing = compressing

    def report(self) -> str:
        how = "compressed after a day" if self._compressing else "not compressed: this edition cannot"
        return f"rows are kept in TimescaleDB hypertables, {how}"

    def create(self, connection: Connection, table: str, statement: str, by: str) -> None:
        connection.execute(
            "CREATE OR REPLACE FUNCTION instant(double precision) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT "
            "PARALLEL SAFE AS 'SELECT to_timestamp($1)'"
        )
        connection.execute(statement)
        connection.execute(
            f"SELECT create_hypertable('{table}', 'time', time_partitioning_func => 'instant', "
            "chunk_time_interval => INTERVAL '1 day', create_default_indexes => false, if_not_exists => true)"
        )
        for line in indexes(table, by):
            connection.execute(line)
        # The table of runs stays open: whether a message is new is asked of it all the time.
        if self._compressing and table != "run":
            connection.execute(
                f"ALTER TABLE {table} SET (timescaledb.compress, timescaledb.compress_segmentby = '{by}', "
                "timescaledb.compress_orderby = 'time')"
            )

    def ready(self, connection: Connection, wanted: Iterable[tuple[str, float]], now: float) -> None:
        """Chunks come by themselves."""

    def pack(self, connection: Connection, tables: Iterable[str], now: float) -> None:
        for table in tables if self._compressing else ():
            if table != "run":
                connection.execute(
                    "SELECT compress_chunk(chunk, if_not_compressed => true) "
                    f"FROM show_chunks('{table}', older_than => to_timestamp(%s)) AS chunk",
                    [now - DAY],
                )

    def forget(self, connection: Connection, table: str, before: float) -> int:
        chunks = connection.execute(
            f"SELECT show_chunks('{table}', older_than => to_timestamp(%s))::text", [before]
        ).fetchall()
        gone = sum(_counted(connection, name) for (name,) in chunks)
        connection.execute(f"SELECT drop_chunks('{table}', older_than => to_timestamp(%s))", [before])
        return gone

    def edge(self, table: str, before: float) -> float:  # noqa: ARG002  # all have chunks of a day
        return before // DAY * DAY


def chosen(url: str, kind: str | None) -> Cut:
    """As it was chosen before, else TimescaleDB if it is to be had."""
    if kind == Partitions.kind:
        return Partitions()
    # On a connection of its own: a library that should have been loaded at the server's start ends the connection.
    try:
        with connect(url) as connection:
            if not connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'timescaledb'").fetchone():
                return Partitions("this server has no TimescaleDB")
            if kind is None:
                connection.execute("CREATE EXTENSION IF NOT EXISTS timescaledb")
        # The extension's own settings are there from the next connection on.
        with connect(url) as connection:
            found = connection.execute("SELECT current_setting('timescaledb.license', true)").fetchone()
    except psycopg.Error as error:
        if kind is not None:
            raise
        return Partitions(f"TimescaleDB cannot be used: {said(error)}")
    return Hypertables(compressing=found != ("apache",))
