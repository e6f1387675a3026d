"""Show this machine's records to Prometheus, read at every scrape (port 9010)."""

import signal
import threading
from typing import TYPE_CHECKING

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_root,
    add_settings,
    add_web_config,
    parser,
    sentences,
    settings_of,
)
from jobsight.clock import SystemClock
from jobsight.host import Host

if TYPE_CHECKING:
    from jobsight.exporter.webconfig import Watched


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("exporter", __doc__)
    add_settings(accept)
    add_root(accept)
    accept.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:9010")
    add_web_config(accept)
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    address = given.listen or settings.exporter.listen
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise WrongUseError(f"expected an address such as 127.0.0.1:9010, got {address!r}")
    from jobsight.exporter.scrape import Scraper
    from jobsight.exporter.web import server

    try:
        watched = _watched(given.web_config or settings.exporter.web_config_file)
        web = server(host or "127.0.0.1", int(port), Scraper(settings, Host(given.root), SystemClock()), watched)
    except (OSError, OverflowError) as error:
        raise FailedError(f"cannot listen on {address}: {error}") from None
    for number in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for the loop it stops, so it must not be called from inside it.
        signal.signal(number, lambda *_: threading.Thread(target=web.shutdown).start())
    scheme = "https" if watched and watched.secure else "http"
    print(f"jobsight: metrics on {scheme}://{web.server_name}:{web.server_port}/metrics", flush=True)
    web.serve_forever()
    web.server_close()
    return 0


def _watched(file: str | None) -> "Watched | None":
    if file is None:
        return None
    from jobsight.apart import values_of
    from jobsight.exporter.webconfig import Watched

    return Watched(file, values_of)
