"""The tables of a PostgreSQL store: made once, added to when records grow, refused when newer than we are."""

from typing import Any

import psycopg

from jobsight.schema.record import fields_of
from jobsight.schema.sqltable import POSTGRES, STAMP, additions, create
from jobsight.store import document, inbox
from jobsight.store.partition import Cut, Hypertables, Partitions, chosen
from jobsight.store.pool import Connection, connect, said
from jobsight.store.protocol import StoreError

# Our own layout's number: a newer one is refused, an older one brought up to date.
LAYOUT = 1
OLDEST = 130000
# Its key is a message's identity: what is there has been counted.
RUN = """CREATE TABLE IF NOT EXISTS run (
  cluster text NOT NULL, node text NOT NULL, boot text NOT NULL, collector text NOT NULL,
  time double precision NOT NULL, uptime double precision, every double precision, status text NOT NULL,
  seconds double precision, error text, missing text, count bigint,
  PRIMARY KEY (cluster, node, boot, collector, time))"""
# What each collector of each node said last, in every boot, and when it last went well: the start page and a server
# that takes over ask for nothing else.
LATEST = """CREATE TABLE IF NOT EXISTS latest (
  cluster text NOT NULL, node text NOT NULL, boot text NOT NULL, collector text NOT NULL,
  time double precision NOT NULL, every double precision, status text NOT NULL,
  good_time double precision, good_uptime double precision, good_every double precision, figures jsonb,
  PRIMARY KEY (cluster, node, boot, collector))"""
KEPT = "CREATE TABLE IF NOT EXISTS layout (number integer NOT NULL, kind text NOT NULL)"
# Whoever makes or adds to tables does it alone.
ALONE = "SELECT pg_advisory_xact_lock(hashtext('layout'), hashtext(current_schema()))"


def prepare(url: str, connection: Connection, records: dict[str, type[Any]]) -> Cut:
    """Tables as this program knows them. Where they are there, nothing is written: a reader may have no right to."""
    if connection.info.server_version < OLDEST:
        raise StoreError(f"this is PostgreSQL {connection.info.server_version // 10000}; 13 or newer is needed")
    kind = _kind(connection)
    if kind and not _missing(connection, records):
        return chosen(url, kind)
    cut = chosen(url, kind)
    try:
        return _prepared(url, cut, records)
    except psycopg.Error as error:
        if kind or cut.kind == Partitions.kind:
            raise
        # Nothing is there yet, so nothing is lost by doing without.
        return _prepared(url, Partitions(f"TimescaleDB would not do it: {said(error)}"), records)


def _prepared(url: str, cut: Cut, records: dict[str, type[Any]]) -> Cut:
    with connect(url) as connection, connection.transaction():
        connection.execute(ALONE)
        kind = _kind(connection)
        if kind and kind != cut.kind:
            # Another server was quicker, and chose otherwise.
            cut = chosen(url, kind)
        _create(connection, cut, records)
        if not kind:
            connection.execute("INSERT INTO layout VALUES (%s, %s)", [LAYOUT, cut.kind])
    return cut


def _kind(connection: Connection) -> str | None:
    """How the tables were cut; None where there are none yet."""
    if "layout" not in _present(connection):
        return None
    found = connection.execute("SELECT number, kind FROM layout ORDER BY number DESC LIMIT 1").fetchone()
    if found is None:
        return None
    number, kind = found
    if number > LAYOUT:
        raise StoreError(f"the database was written by a newer jobsight (layout {number}, this one knows {LAYOUT})")
    if kind not in (Partitions.kind, Hypertables.kind):
        raise StoreError(f"the database's layout is of a kind this jobsight does not know: {kind}")
    return str(kind)


def _present(connection: Connection) -> dict[str, set[str]]:
    """Tables and their columns."""
    rows = connection.execute(
        "SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 "
        "AND NOT attisdropped"
    )
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def _missing(connection: Connection, records: dict[str, type[Any]]) -> bool:
    present = _present(connection)
    if {"run", "latest", "inbox", "job"} - set(present):
        return True
    return any(
        not {*STAMP, *(field.name for field in fields_of(record))} <= present.get(table, set())
        for table, record in records.items()
    )


def _create(connection: Connection, cut: Cut, records: dict[str, type[Any]]) -> None:
    for statement in (KEPT, LATEST, inbox.TABLE, inbox.STORAGE, document.TABLE, *document.INDEXES):
        connection.execute(statement)
    present = _present(connection)
    if "run" not in present:
        cut.create(connection, "run", RUN, None)
    for table, record in records.items():
        if table not in present:
            cut.create(connection, table, create(table, record, POSTGRES), record)
            continue
        for statement in additions(table, record, present[table], POSTGRES):
            connection.execute(statement)
