"""Show this machine's jobs, energy and records to Prometheus, read at every scrape (port 9010).

By the names of the batch job exporter, whose flags are understood too, and by our own: docs/operate/exporter.md.
"""

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_root,
    add_settings,
    add_web_config,
    parser,
    sentences,
)
from jobsight.clock import SystemClock
from jobsight.compat import batchflags, batchmetricsflags
from jobsight.host import Host
from jobsight.settings import Settings, from_values

if TYPE_CHECKING:
    import argparse

    from jobsight.exporter.web import Server
    from jobsight.exporter.webconfig import Watched


@sentences
def run(arguments: list[str]) -> int:
    given = _given(arguments)
    try:
        settings = _settings(given)
        root = batchmetricsflags.root(given) or given.root
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    for remark in batchflags.remarks(given, batchmetricsflags.FLAGS):
        print(f"jobsight: {remark}", file=sys.stderr)
    if not settings.exporter.listen.rpartition(":")[2].isdecimal():
        raise WrongUseError(f"expected an address such as 127.0.0.1:9010, got {settings.exporter.listen!r}")
    watched = _watched(settings.exporter.web_config_file)
    server = _server(settings, root, watched, socket=given.systemd_socket)
    host, port, *_ = server.link.getsockname()
    place = f"[{host}]" if ":" in host else host
    scheme = "https" if watched and watched.secure else "http"
    print(f"jobsight: metrics on {scheme}://{place}:{port}{settings.exporter.path}", flush=True)
    _serve(server)
    return 0


def _given(arguments: list[str]) -> "argparse.Namespace":
    accept = parser("exporter", __doc__)
    add_settings(accept)
    add_root(accept)
    accept.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9010")
    add_web_config(accept)
    accept.add_argument("--no-records", action="store_true", help="without the series by our own names")
    accept.add_argument("--no-batchjob", action="store_true", help="without those of the batch job exporter")
    accept.add_argument(
        "--systemd-socket", "--web.systemd-socket", action="store_true", help="listen on the socket systemd opened"
    )
    batchflags.add(accept, batchmetricsflags.FLAGS)
    return accept.parse_args(arguments)


def _settings(given: "argparse.Namespace") -> Settings:
    """Those of the file, with what the command line says. Of the collectors only those that are shown are loaded."""
    from jobsight.compat.batchmetrics import SOURCES
    from jobsight.exporter.scrape import check, sources

    values: Any = {}
    if given.settings:
        from jobsight.apart import values_of

        values = values_of(given.settings)
    file = given.settings or "settings"
    exporter = from_values(values, file, only=("memory",)).exporter
    check(exporter)
    needed = [
        *sources(exporter._replace(records=exporter.records and not given.no_records)),
        *sum(SOURCES.values(), ()),
    ]
    settings = batchflags.applied(from_values(values, file, only=needed), given, batchmetricsflags.FLAGS)
    settings = batchmetricsflags.with_token(settings, os.environ)
    exporter = settings.exporter._replace(
        listen=given.listen or settings.exporter.listen,
        web_config_file=given.web_config or exporter.web_config_file,
        records=exporter.records and not given.no_records,
        batchjob=settings.exporter.batchjob._replace(enabled=exporter.batchjob.enabled and not given.no_batchjob),
    )
    check(exporter)
    return settings._replace(exporter=exporter)


def _watched(file: str | None) -> "Watched | None":
    if file is None:
        return None
    from jobsight.apart import values_of
    from jobsight.exporter.webconfig import Watched

    return Watched(file, values_of)


def _server(settings: Settings, root: str, watched: "Watched | None", *, socket: bool) -> "Server":
    from jobsight.exporter.page import Pages
    from jobsight.exporter.scrape import Scraper
    from jobsight.exporter.web import SPARE, Server, inherited, listen

    exporter = settings.exporter
    try:
        link = inherited(dict(os.environ), os.getpid()) if socket else listen(exporter.listen)
    except (OSError, OverflowError) as error:
        raise FailedError(f"cannot listen on {exporter.listen}: {error}") from None
    if link is None:
        raise FailedError("systemd opened no socket for this process")
    pages = Pages(Scraper(settings, Host(root), SystemClock()), exporter.path, exporter.requests, watched)
    return Server(link, pages.answer, exporter.requests + SPARE, watched)


def _serve(server: "Server") -> None:
    import gc

    from jobsight.exporter.web import Stopped

    def stop(*_: object) -> None:
        raise Stopped

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        # What is loaded stays, and rows come by the thousand: looking for cycles among them is no use.
        gc.freeze()
        gc.set_threshold(50_000, 10, 10)
        server.serve()
    except Stopped:
        pass
    finally:
        server.link.close()
