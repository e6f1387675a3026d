"""A record's table in PostgreSQL: rows over time, and apart from them the series that they are of.

Which cluster, node, boot, process, device a row is about is the same in thousands of rows, and a row store keeps it
thousands of times. So labels stand once in `process_series`, under the identifier that `schema.series` makes of
them, and `process_row` has the identifier, the time and what was measured. The view `process` is both together.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any
from uuid import UUID

from jobsight.schema.record import fields_of
from jobsight.schema.series import series_id, series_name
from jobsight.schema.sqltable import POSTGRES, STAMP
from jobsight.schema.units import base
from jobsight.store.pool import Connection

DAY = 86400
# Series remembered as stored, in two generations; one takes less than a kilobyte.
MOST = 150_000
# What series are looked for by.
SOUGHT = ("job_key", "job", "node", "entry")
Row = Sequence[Any]


class Table:
    """One record's rows and series. What is remembered holds only as long as nobody else writes and nothing fails:
    then it must be told to `doubt`.
    """

    def __init__(self, name: str, record: type[Any], namespace: UUID) -> None:
        self.name = name
        self.rows = f"{name}_row"
        self.series = f"{name}_series"
        self._namespace = namespace
        kinds = {**STAMP, **{field.name: base(field.unit) for field in fields_of(record)}}
        self.columns = list(kinds)
        named = {"time", *(field.name for field in fields_of(record) if field.kind != "label")}
        self.values = {column: POSTGRES[kind] for column, kind in kinds.items() if column in named}
        self.labels = {column: POSTGRES[kind] for column, kind in kinds.items() if column not in named}
        self._floats = [index for index, column in enumerate(self.labels) if kinds[column] is float]
        self._label_of = itemgetter(*(self.columns.index(column) for column in self.labels))
        self._value_of = _picked([self.columns.index(column) for column in self.values])
        self._young: dict[Row, tuple[UUID, float]] = {}
        self._old: dict[Row, tuple[UUID, float]] = {}

    def create_rows(self) -> str:
        columns = "".join(f", {name} {kind}" for name, kind in self.values.items() if name != "time")
        return f"CREATE TABLE {self.rows} (series uuid NOT NULL, time double precision NOT NULL{columns})"

    def create_series(self) -> list[str]:
        columns = "".join(f", {name} {kind}" for name, kind in self.labels.items())
        table = f"CREATE TABLE {self.series} (series uuid PRIMARY KEY, newest bigint NOT NULL{columns})"
        sought = [name for name in SOUGHT if name in self.labels]
        return [table, *(f"CREATE INDEX {self.series}_{name} ON {self.series} ({name})" for name in sought)]

    def additions(self, rows: set[str], series: set[str]) -> list[str]:
        """What brings tables of an older program up to date."""
        grown = ((self.rows, self.values, rows), (self.series, self.labels, series))
        return [
            f"ALTER TABLE {table} ADD COLUMN {name} {kind}"
            for table, columns, present in grown
            for name, kind in columns.items()
            if name not in present
        ]

    def view(self, present: Iterable[str]) -> str:
        """New columns go to the end: so the view can be replaced, and keeps who may read it."""
        known = [name for name in present if name in self.columns]
        columns = [*known, *(name for name in self.columns if name not in known)]
        # The outer join is left out by the planner where a query asks for no label.
        return (
            f"CREATE OR REPLACE VIEW {self.name} AS SELECT {', '.join(columns)} FROM {self.rows} "
            f"LEFT JOIN {self.series} USING (series)"
        )

    def copy(self, connection: Connection, rows: Iterable[Row]) -> int:
        """Rows with their stamp, in the order of the record's fields, into the transaction that is open; how many."""
        fresh: dict[UUID, tuple[int, Row]] = {}
        label_of, value_of, young = self._label_of, self._value_of, self._young
        number = 0
        statement = f"COPY {self.rows} (series, {', '.join(self.values)}) FROM STDIN (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(statement) as target:
            target.set_types(["uuid", *self.values.values()])
            for row in rows:
                labels, values = label_of(row), value_of(row)
                known = young.get(labels)
                if known is None or values[0] >= known[1]:
                    known = self._met(labels, values[0], fresh)
                    young = self._young
                target.write_row((known[0], *values))
                number += 1
        if fresh:
            self._enter(connection, fresh)
        return number

    def _met(self, labels: Row, time: float, fresh: dict[UUID, tuple[int, Row]]) -> tuple[UUID, float]:
        """A series that is new, or new on this day, or was not asked for lately."""
        found = self._young.get(labels) or self._old.get(labels)
        if found is None or time >= found[1]:
            day = int(time // DAY)
            identifier = found[0] if found else self.identifier(labels)
            fresh[identifier] = (day, labels)
            found = (identifier, float((day + 1) * DAY))
        if len(self._young) >= MOST:
            self._old, self._young = self._young, {}
        self._young[labels] = found
        return found

    def identifier(self, labels: Row) -> UUID:
        """Of the series with these labels: cluster, node, boot and the record's own."""
        given = list(labels)
        for index in self._floats:
            # 50 and 50.0 are one.
            given[index] = None if given[index] is None else float(given[index])
        return series_id(self._namespace, series_name(given))

    def _enter(self, connection: Connection, fresh: dict[UUID, tuple[int, Row]]) -> None:
        """Series that are not there yet; of the others, the last day on which they were seen."""
        rows = [(identifier, day, *labels) for identifier, (day, labels) in fresh.items()]
        kinds = ["uuid", "bigint", *self.labels.values()]
        connection.execute(
            f"INSERT INTO {self.series} AS known (series, newest, {', '.join(self.labels)}) "
            f"SELECT * FROM unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) ON CONFLICT (series) "
            "DO UPDATE SET newest = excluded.newest WHERE known.newest < excluded.newest",
            [list(column) for column in zip(*rows, strict=True)],
        )

    def forget_series(self, connection: Connection, before: float) -> None:
        """Drop series of which there is no row any more, after those older than `before` went."""
        connection.execute(f"DELETE FROM {self.series} WHERE (newest + 1) * {DAY} <= %s", [before])
        self.doubt()

    def doubt(self) -> None:
        """Forget what was thought to be stored."""
        self._young, self._old = {}, {}


def _picked(indexes: list[int]) -> Callable[[Row], tuple[Any, ...]]:
    """Like `itemgetter`, which makes no tuple of a single one."""
    if len(indexes) > 1:
        return itemgetter(*indexes)
    (index,) = indexes
    return lambda row: (row[index],)
