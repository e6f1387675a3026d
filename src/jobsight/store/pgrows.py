"""Messages into PostgreSQL's tables: which are new, their rows by binary COPY, and what each node said last."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from jobsight.ingest.accept import Accepted
from jobsight.schema.message import Status
from jobsight.schema.record import fields_of
from jobsight.store.pool import Connection

RUN = {
    "cluster": "text", "node": "text", "boot": "text", "collector": "text", "time": "float8", "uptime": "float8",
    "every": "float8", "status": "text", "seconds": "float8", "error": "text", "missing": "text", "count": "int8",
}  # fmt: skip
# A message that is there already yields nothing back.
ENTER = (
    f"INSERT INTO run ({', '.join(RUN)}) SELECT * FROM unnest({', '.join(f'%s::{kind}[]' for kind in RUN.values())}) "
    "ON CONFLICT DO NOTHING RETURNING cluster, node, boot, collector, time"
)
# What the start page shows of a node, by the collector that has it.
FIGURES = {"memory": ("total", "available"), "load": ("load1",), "hardware": ("cpus", "model")}
# The newest wins, but a clock that was ahead must not hold a node in the future. What went well is ordered by the
# time since boot, which nobody sets.
LATEST = """INSERT INTO latest AS known
  (cluster, node, boot, collector, time, every, status, good_time, good_uptime, good_every, figures)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (cluster, node, boot, collector) DO UPDATE SET
  (time, every, status) = (SELECT new.time, new.every, new.status FROM (VALUES
    (excluded.time, excluded.every, excluded.status), (known.time, known.every, known.status))
    AS new (time, every, status) ORDER BY new.time > %s, new.time DESC LIMIT 1),
  (good_time, good_uptime, good_every, figures) = (SELECT new.time, new.uptime, new.every, new.figures FROM (VALUES
    (excluded.good_time, excluded.good_uptime, excluded.good_every, excluded.figures),
    (known.good_time, known.good_uptime, known.good_every, known.figures))
    AS new (time, uptime, every, figures) ORDER BY new.uptime DESC NULLS LAST, new.time DESC LIMIT 1)"""
AHEAD = 300
AGAIN = """INSERT INTO latest
  (cluster, node, boot, collector, time, every, status, good_time, good_uptime, good_every)
SELECT last.*, good.time, good.uptime, good.every FROM
  (SELECT DISTINCT ON (cluster, node, boot, collector) cluster, node, boot, collector, time, every, status FROM run
    ORDER BY cluster, node, boot, collector, time > %s, time DESC) AS last
  LEFT JOIN (SELECT DISTINCT ON (cluster, node, boot, collector) cluster, node, boot, collector, time, uptime, every
    FROM run WHERE status = 'ok' ORDER BY cluster, node, boot, collector, uptime DESC NULLS LAST, time DESC) AS good
  USING (cluster, node, boot, collector)"""


def storable(message: Accepted) -> Accepted:
    """PostgreSQL's texts cannot hold the character 0, which no kernel gives out. A sign stands where one was."""
    if b"\\u0000" not in message.line:
        return message
    plain = msgspec.structs.asdict(message)
    return Accepted(**{name: value if name == "line" else without(value) for name, value in plain.items()})


def without(value: Any) -> Any:
    """A value of any shape without the character 0."""
    if isinstance(value, str):
        # A status is a text too, and must stay what it is.
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, list):
        return [without(item) for item in value]
    if isinstance(value, tuple):
        return tuple([without(item) for item in value])
    if isinstance(value, dict):
        return {without(key): without(item) for key, item in value.items()}
    return value


def entered(connection: Connection, messages: Sequence[Accepted]) -> list[Accepted]:
    """Those not stored before, each once, in their order; their runs are stored now."""
    if not messages:
        return []
    rows = [
        (*m.identity, m.uptime, m.every, m.status.value, m.seconds, m.error, _json(m.missing), m.count)
        for m in messages
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    new = set(connection.execute(ENTER, columns).fetchall())
    found = []
    for message in messages:
        if message.identity in new:
            new.remove(message.identity)
            found.append(message)
    return found


def _json(value: dict[str, str]) -> str:
    return msgspec.json.encode(value).decode()


def rows_of(messages: Iterable[Accepted], record: type[Any]) -> Iterator[tuple[Any, ...]]:
    """Columns turned into rows; a column that was not sent is missing in each."""
    names = [field.name for field in fields_of(record)]
    for message in messages:
        columns = [message.columns.get(name) or repeat(None, message.count) for name in names]
        stamp = (message.cluster, message.node, message.boot, message.time)
        for row in zip(*columns, strict=True):
            yield (*stamp, *row)


def remember(connection: Connection, messages: Iterable[Accepted], now: float) -> None:
    """What each collector of each node said last."""
    said: dict[tuple[str, ...], Accepted] = {}
    good: dict[tuple[str, ...], Accepted] = {}
    for message in messages:
        place = message.identity[:4]
        if place not in said or said[place].time <= message.time:
            said[place] = message
        if message.status == Status.OK and (place not in good or good[place].uptime <= message.uptime):
            good[place] = message
    rows = []
    for where, last in said.items():
        well = good.get(where)
        found = (well.time, well.uptime, well.every, _figures(well)) if well else (None, None, None, None)
        rows.append((*where, last.time, last.every, last.status.value, *found, now + AHEAD))
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(LATEST, rows)


def remember_again(connection: Connection, now: float) -> None:
    """The same from runs and rows that are stored already."""
    connection.execute("DELETE FROM latest")
    connection.execute(AGAIN, [now + AHEAD])
    for collector, names in FIGURES.items():
        built = ", ".join(f"'{name}', {name}" for name in names)
        connection.execute(
            f"UPDATE latest SET figures = jsonb_build_object({built}) FROM {collector} AS row "
            "WHERE latest.collector = %s AND latest.good_time = row.time AND latest.cluster = row.cluster "
            "AND latest.node = row.node AND latest.boot = row.boot",
            [collector],
        )


def _figures(message: Accepted) -> Jsonb | None:
    names = FIGURES.get(message.collector, ())
    found = {name: message.columns[name][0] for name in names if message.columns.get(name)}
    return Jsonb(found) if found else None
