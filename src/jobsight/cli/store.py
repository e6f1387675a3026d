"""Look after the store: what it holds, moving rows to files, dropping old ones, export.

`status` answers while the server runs, through it. `compact` and `retain` do now what the server does by itself;
these and `export` need a store that no server has open.
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

if TYPE_CHECKING:
    from jobsight.store.embedded import Embedded


@sentences
def run(arguments: list[str]) -> int:
    given = _accepted(arguments)
    settings = settings_of(given.settings)
    path = given.store or settings.store.path
    if not os.path.isdir(path):
        raise FailedError(f"nothing has been stored in {path} yet: start with `jobsight up`")
    if given.verb == "status":
        print(_shown(_status(path), given.format))
    elif given.verb == "compact":
        with _owned(path, given.verb) as store:
            print(f"{_counted(store.compact(time.time(), least=1))} moved to files.")
    elif given.verb == "retain":
        keep = settings.store.keep if given.keep is None else given.keep
        with _owned(path, given.verb) as store:
            print(_retain(store, keep, given.jobs, given.table))
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
        "retain": "drop rows that are older than store.keep",
        "export": "one table's rows as a Parquet file",
    }
    made = {}
    for name, text in texts.items():
        made[name] = verbs.add_parser(name, help=text, description=text)
        made[name].add_argument("--store", metavar="DIR", help="where rows and jobs are kept")
        add_settings(made[name])
    add_formats(made["status"])
    made["retain"].add_argument("--keep", type=_duration, help="keep rows this long: 30d, 8w, … (store.keep)")
    made["retain"].add_argument("--table", action="append", default=[], help="only of this table; may be repeated")
    made["retain"].add_argument("--jobs", type=_duration, help="drop jobs too that were last seen longer ago")
    made["export"].add_argument("table", metavar="TABLE", help="`jobsight store status` lists them")
    made["export"].add_argument("file", metavar="FILE", help="the Parquet file to write")
    made["export"].add_argument("--since", default="1970-01-01", help="rows from then on: 7d, 2026-11-15, …")
    made["export"].add_argument("--until", default="9999-01-01", help="rows before then")
    return accept.parse_args(arguments)


def _duration(text: str) -> float:
    try:
        return quantity.duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def _owned(path: str, verb: str) -> "Iterator[Embedded]":
    """The store, ours alone, with everything loaded that was acknowledged."""
    from jobsight.analyse.keeper import open_store
    from jobsight.store.protocol import StoreError

    try:
        store = open_store(path)
    except StoreError as error:
        if server := _server(path):
            why = "which does it by itself" if verb != "export" else "stop it first"
            raise FailedError(f"the store belongs to the server (process {server['pid']}), {why}") from None
        raise FailedError(str(error)) from None
    try:
        store.digest()
        yield store
    except StoreError as error:
        raise FailedError(str(error)) from None
    finally:
        store.close()


def _server(path: str) -> dict[str, Any] | None:
    """Where the server of a store that is in use says it is."""
    from jobsight import files

    announced = files.read_at(os.path.join(path, "server.json"), 0, 4096)
    found: dict[str, Any] | None = json.loads(announced) if announced else None
    return found


def _status(path: str) -> dict[str, Any]:
    from jobsight.analyse.keeper import open_store
    from jobsight.store.protocol import StoreError

    try:
        store = open_store(path)
    except StoreError as error:
        server = _server(path)
        if server is None:
            raise FailedError(str(error)) from None
        return _asked(server["url"])
    try:
        store.digest()
        return store.status().plain()
    finally:
        store.close()


def _asked(url: str) -> dict[str, Any]:
    """What the server that owns the store says of it."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    try:
        # A cluster's proxy has no business between us and our own machine.
        with build_opener(ProxyHandler({})).open(f"{url}/api/store", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (URLError, OSError, ValueError) as error:
        raise FailedError(f"the server at {url} does not say what its store holds: {error}") from None


def _retain(store: "Embedded", keep: float, jobs: float | None, tables: list[str]) -> str:
    now = time.time()
    if unknown := set(tables) - set(store.hot.columns()):
        raise WrongUseError(f"no table {min(unknown)!r}; there are {', '.join(sorted(store.hot.columns()))}")
    said = f"{_counted(store.forget(now - keep, tables))} dropped"
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


def _shown(status: dict[str, Any], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form == "json":
        return json.dumps(status, indent=2)
    if form != "table":
        return export(status["tables"], form)
    names = ["table", "hot", "cold", "files", "bytes", "oldest", "newest"]
    rows = [_row(item) for item in status["tables"] if item["hot"] or item["cold"]]
    span = f"{_counted(status['jobs'], 'job')}, from {_time(status['jobs_oldest'])} to {_time(status['jobs_newest'])}"
    places = {"files": "size_cold", "hot tables": "size_hot", "jobs": "size_small", "log": "size_log"}
    sizes = ", ".join(f"{size(status[key])} {name}" for name, key in places.items())
    foot = [span, f"on disk: {sizes}; in {status['path']}"]
    return "\n".join([table(names, rows, frozenset(names[1:5])), "", *foot])


def _row(item: dict[str, Any]) -> list[str]:
    numbers = [str(item["hot"]), str(item["cold"]), str(item["files"]), size(item["size"])]
    return [item["table"], *numbers, _time(item["oldest"]), _time(item["newest"])]


def _time(instant: float | None) -> str:
    return "—" if instant is None else f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M}"
