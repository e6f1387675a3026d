"""Look after the store: what it holds, moving rows to files, dropping old ones, export, copy.

`status` answers while the server runs, through it. `compact` and `retain` do now what the server does by itself;
these, `export` and `copy` need a store that no server has open.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)
from jobsight.formats import quantity, when
from jobsight.formats.number import size
from jobsight.settings import DATABASES, Store
from jobsight.store.retention import MARKS, Retention, retention

if TYPE_CHECKING:
    from jobsight.store.embedded import Embedded
    from jobsight.store.postgres import Postgres


@sentences
def run(arguments: list[str]) -> int:
    given = _accepted(arguments)
    if given.verb == "copy":
        from jobsight.cli.copying import copied

        return copied(given.source, given.target)
    settings = settings_of(given.settings)
    path = given.store or settings.store.place
    if given.verb == "recount":
        from jobsight.cli.recounting import recounted

        return recounted(path, given, settings.energy)
    database = path.startswith(DATABASES)
    if database and given.verb == "export":
        raise WrongUseError("export reads the embedded store; `jobsight store copy` makes one of a database")
    if not database and not os.path.isdir(path):
        raise FailedError(f"nothing has been stored in {path} yet: start with `jobsight up`")
    if given.verb == "status":
        print(_shown(_status(path), retention(settings.store), given.format))
    elif given.verb == "compact":
        with _owned(path, given.verb) as store:
            print(_compacted(store))
    elif given.verb == "retain":
        with _owned(path, given.verb) as store:
            print(_retain(store, settings.store, given))
    else:
        with _owned(path, given.verb) as store:
            print(_export(store, given))
    return 0


def _accepted(arguments: list[str]) -> argparse.Namespace:
    accept = parser("store", __doc__)
    verbs = accept.add_subparsers(dest="verb", metavar="VERB", required=True)
    texts = {
        "status": "rows, bytes and times of every table",
        "compact": "move rows of hours and days that are over to files",
        "retain": "drop rows that are older than store.keep and store.keep_rows say",
        "recount": "count usage and jobs again from the rows that were sent",
        "export": "one table's rows as a Parquet file",
    }
    made = {}
    for name, text in texts.items():
        made[name] = verbs.add_parser(name, help=text, description=text)
        place = "DIR" if name == "export" else "DIR|URL"
        made[name].add_argument("--store", metavar=place, help="where rows and jobs are kept")
        add_settings(made[name])
    text = "all rows and jobs of one store into another, by table and day; run again to go on"
    copy = verbs.add_parser("copy", help=text, description=text)
    copy.add_argument("--from", dest="source", metavar="DIR|URL", required=True, help="the store to copy")
    copy.add_argument("--to", dest="target", metavar="DIR|URL", required=True, help="an empty one or an earlier copy")
    add_formats(made["status"])
    made["retain"].add_argument("--keep", type=_duration, help="keep rows this long: 30d, 8w, …")
    made["retain"].add_argument("--table", action="append", default=[], help="only of this table; may be repeated")
    made["retain"].add_argument("--jobs", type=_duration, help="drop jobs too that were last seen longer ago")
    made["export"].add_argument("table", metavar="TABLE", help="`jobsight store status` lists them")
    made["export"].add_argument("file", metavar="FILE", help="the Parquet file to write")
    made["recount"].add_argument("--job", metavar="ID", help="only this job")
    for name in ("export", "recount"):
        made[name].add_argument("--since", default="1970-01-01", help="rows from then on: 7d, 2026-11-15, …")
        made[name].add_argument("--until", default="9999-01-01", help="rows before then")
    return accept.parse_args(arguments)


def _duration(text: str) -> float:
    try:
        return quantity.duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def _owned(path: str, verb: str) -> "Iterator[Any]":
    """The store, ours alone, with everything loaded that was acknowledged."""
    from jobsight.analyse.keeper import open_database, open_store
    from jobsight.store.protocol import StoreError

    try:
        store = open_database(path) if path.startswith(DATABASES) else open_store(path)
    except StoreError as error:
        if server := _server(path):
            why = "which does it by itself" if verb != "export" else "stop it first"
            raise FailedError(f"the store belongs to the server (process {server['pid']}), {why}") from None
        raise FailedError(str(error)) from None
    try:
        store.digest()
        if not store.digests:
            raise FailedError("a server digests into this database, which does it by itself")
        yield store
    except StoreError as error:
        raise FailedError(str(error)) from None
    finally:
        store.close()


def _server(path: str) -> dict[str, Any] | None:
    """Where the server of a store that is in use says it is."""
    from jobsight.show import notice

    found = notice.read(path)
    return found._asdict() if found else None


def _status(path: str) -> dict[str, Any]:
    from jobsight.analyse.keeper import open_database, open_store
    from jobsight.store.protocol import StoreError

    try:
        store = open_database(path) if path.startswith(DATABASES) else open_store(path)
    except StoreError as error:
        server = _server(path)
        if server is None:
            raise FailedError(str(error)) from None
        return _asked(path, server["url"])
    try:
        store.digest()
        return store.status().plain()
    finally:
        store.close()


def _asked(path: str, url: str) -> dict[str, Any]:
    """What the server that owns the store says of it."""
    from urllib.error import URLError

    from jobsight.show import notice

    server = notice.read(path)
    if server is None:
        raise FailedError(f"the server at {url} has stopped: try again")
    try:
        with server.opener()(f"{url}/api/v1/store", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (URLError, OSError, ValueError) as error:
        raise FailedError(f"the server at {url} does not say what its store holds: {error}") from None


def _compacted(store: "Embedded | Postgres") -> str:
    from jobsight.store.embedded import Embedded

    if isinstance(store, Embedded):
        return f"{_counted(store.compact(time.time(), least=1))} moved to files."
    store.compact(time.time())
    return "Days that are over are packed, where the database can."


def _retain(store: "Embedded | Postgres", settings: Store, given: argparse.Namespace) -> str:
    from jobsight.store.embedded import Embedded

    now, keeping = time.time(), retention(settings)
    known = sorted(store.hot.columns() if isinstance(store, Embedded) else ["run", *store.tables])
    if unknown := set(given.table) - set(known):
        raise WrongUseError(f"no table {min(unknown)!r}; there are {', '.join(known)}")
    rows = 0
    for keep, tables in keeping.times(given.table or [name for name in known if name not in MARKS]).items():
        rows += store.forget(now - (keep if given.keep is None else given.keep), tables)
    jobs = keeping.jobs if given.jobs is None else given.jobs
    said = f"{_counted(rows)} dropped"
    if jobs is not None:
        said += f", and {_counted(store.forget_jobs(now - jobs), 'job')}"
    return f"{said}."


def _export(store: "Embedded", given: argparse.Namespace) -> str:
    import duckdb

    now = time.time()
    try:
        since, until = when.instant(given.since, now), when.instant(given.until, now, end=True)
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    try:
        count = store.export(given.table, given.file, since, until)
    except duckdb.Error as error:
        raise FailedError(f"{given.file} was not written: {str(error).splitlines()[0]}") from None
    return f"{_counted(count)} in {given.file}."


def _counted(number: int, noun: str = "row") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shown(status: dict[str, Any], keeping: Retention, form: str) -> str:
    from jobsight.show.terminal import export, table

    for item in status["tables"]:
        item["keep"] = keeping.of(item["table"])
    if form == "json":
        return json.dumps(status, indent=2)
    if form != "table":
        return export(status["tables"], form)
    names = ["table", "hot", "cold", "files", "bytes", "kept", "oldest", "newest"]
    rows = [_row(item) for item in status["tables"] if item["hot"] or item["cold"]]
    span = f"{_counted(status['jobs'], 'job')}, from {_time(status['jobs_oldest'])} to {_time(status['jobs_newest'])}"
    places = {"files": "size_cold", "hot tables": "size_hot", "jobs": "size_small", "log": "size_log"}
    sizes = ", ".join(f"{size(status[key])} {name}" for name, key in places.items())
    span += "" if keeping.jobs is None else f", kept {_days(keeping.jobs)}"
    foot = [span, f"on disk: {sizes}; in {status['path']}"]
    return "\n".join([table(names, rows, frozenset(names[1:6])), "", *foot])


def _row(item: dict[str, Any]) -> list[str]:
    numbers = [str(item["hot"]), str(item["cold"]), str(item["files"]), size(item["size"])]
    return [item["table"], *numbers, _days(item["keep"]), _time(item["oldest"]), _time(item["newest"])]


def _days(seconds: float) -> str:
    return f"{seconds / 86400:.6g} d"


def _time(instant: float | None) -> str:
    return "—" if instant is None else f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M}"
