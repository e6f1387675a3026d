"""The tables of a PostgreSQL store: made once, added to when records grow, refused when newer than we are."""

from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from jobsight.schema.series import new_namespace
from jobsight.store import document, inbox
from jobsight.store.partition import Cut, Hypertables, Partitions, chosen
from jobsight.store.pgamendment import HORIZON
from jobsight.store.pgtable import Table
from jobsight.store.pool import Connection, connect, said
from jobsight.store.protocol import StoreError

# Our own layout's number. Layout 1, in which rows had their labels with them, was never released.
LAYOUT = 2
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
# What identifiers of series are made in. Random, made once, and never changed: all of them would.
SITE = "CREATE TABLE IF NOT EXISTS site (namespace uuid NOT NULL)"
# Whoever makes or adds to tables does it alone.
ALONE = "SELECT pg_advisory_xact_lock(hashtext('layout'), hashtext(current_schema()))"


class Layout(NamedTuple):
    """How the database is laid out."""

    cut: Cut
    tables: dict[str, Table]
    namespace: UUID


def prepare(url: str, connection: Connection, records: dict[str, type[Any]]) -> Layout:
    """Tables as this program knows them. Where they are there, nothing is written: a reader may have no right to."""
    if connection.info.server_version < OLDEST:
        raise StoreError(f"this is PostgreSQL {connection.info.server_version // 10000}; 13 or newer is needed")
    kind = _kind(connection)
    cut = chosen(url, kind)
    if kind and (namespace := _namespace(connection)):
        tables = {name: Table(name, record, namespace) for name, record in records.items()}
        if not _missing(connection, tables):
            return Layout(cut, tables, namespace)
    try:
        return _prepared(url, cut, records)
    except psycopg.Error as error:
        if kind or cut.kind == Partitions.kind:
            raise
        # Nothing is there yet, so nothing is lost by doing without.
        return _prepared(url, Partitions(f"TimescaleDB would not do it: {said(error)}"), records)


def _prepared(url: str, cut: Cut, records: dict[str, type[Any]]) -> Layout:
    with connect(url) as connection, connection.transaction():
        connection.execute(ALONE)
        kind = _kind(connection)
        if kind and kind != cut.kind:
            # Another server was quicker, and chose otherwise.
            cut = chosen(url, kind)
        for statement in (KEPT, SITE, LATEST, HORIZON, inbox.TABLE, inbox.STORAGE, document.TABLE, *document.INDEXES):
            connection.execute(statement)
        namespace = _namespace(connection)
        if namespace is None:
            namespace = new_namespace()
            connection.execute("INSERT INTO site VALUES (%s)", [namespace])
        tables = {name: Table(name, record, namespace) for name, record in records.items()}
        _create(connection, cut, tables)
        if not kind:
            connection.execute("INSERT INTO layout VALUES (%s, %s)", [LAYOUT, cut.kind])
    return Layout(cut, tables, namespace)


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
    if number < LAYOUT:
        raise StoreError(f"the database was made before the first release (layout {number}): start with an empty one")
    if kind not in (Partitions.kind, Hypertables.kind):
        raise StoreError(f"the database's layout is of a kind this jobsight does not know: {kind}")
    return str(kind)


def _namespace(connection: Connection) -> UUID | None:
    if "site" not in _present(connection):
        return None
    found = connection.execute("SELECT namespace FROM site").fetchone()
    return UUID(str(found[0])) if found else None


def _present(connection: Connection) -> dict[str, list[str]]:
    """Tables and views, and their columns in order."""
    rows = connection.execute(
        "SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') AND attnum > 0 "
        "AND NOT attisdropped ORDER BY relname, attnum"
    )
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def _missing(connection: Connection, tables: dict[str, Table]) -> bool:
    present = _present(connection)
    if {"run", "latest", "inbox", "job", "horizon"} - set(present) or set(document.COLUMNS) - set(present["job"]):
        return True
    return any(not set(table.columns) <= set(present.get(name, ())) for name, table in tables.items())


def _create(connection: Connection, cut: Cut, tables: dict[str, Table]) -> None:
    present = _present(connection)
    if "run" not in present:
        cut.create(connection, "run", RUN, "node")
    for name, table in tables.items():
        if table.rows not in present:
            cut.create(connection, table.rows, table.create_rows(), "series")
            for statement in table.create_series():
                connection.execute(statement)
        else:
            for statement in table.additions(set(present[table.rows]), set(present[table.series])):
                connection.execute(statement)
        connection.execute(table.view(present.get(name, ())))
