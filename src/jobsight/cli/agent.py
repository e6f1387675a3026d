"""Sample this machine and send what is seen, until stopped.

SIGTERM and Ctrl-C stop it cleanly, SIGHUP reloads the settings. `--once` runs every collector once, for cron;
the lock file keeps two from running at a time.
"""

import os
import sys
from typing import Any

from jobsight import catalogue
from jobsight.agent.notify import Notify
from jobsight.agent.service import Agent, Signals, open_sinks, serve
from jobsight.cli.arguments import WrongUseError, add_root, add_settings, parser, seconds, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.files import Lock
from jobsight.host import Host
from jobsight.schema.units import Seconds
from jobsight.settings import Destination, Settings, from_values


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("agent", __doc__)
    add_settings(accept)
    add_root(accept)
    accept.add_argument("--once", action="store_true", help="run every collector once and stop")
    accept.add_argument("--url", help="send to this server, in place of the sinks in the settings")
    accept.add_argument("--token-file", metavar="FILE", help="with --url: the token that server asks for")
    accept.add_argument("--every", metavar="SECONDS", type=seconds, help="sample at least this often")
    accept.add_argument("--leash", action="store_true", help="stop when standard input is closed")
    given = accept.parse_args(arguments)

    def load() -> Settings:
        # One machine's own agent has nobody to take turns with.
        window = 1.0 if given.leash else None
        return _adjusted(
            _read(given.settings, given.once), _options(given.url, given.token_file, window), given.every
        )

    try:
        settings = load()
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    with Lock(settings.lock):
        if given.once:
            _once(settings, given.root)
        else:
            serve(load, given.root, SystemClock(), Signals(leash=given.leash), Notify(os.environ))
    return 0


def _read(file: str | None, once: bool) -> Settings:
    if file is None or once:
        return settings_of(file)
    from jobsight.apart import values_of

    return from_values(values_of(os.path.abspath(file)), file)


def _options(url: str | None, token_file: str | None, window: float | None) -> Any:
    if url is None:
        return None
    module = catalogue.sink("http")
    options = module.Options(url=url, token_file=token_file)
    module.check(options)
    return options if window is None else options._replace(window=Seconds(window))


def _adjusted(settings: Settings, options: Any, every: float | None) -> Settings:
    if options:
        settings = settings._replace(sinks=(Destination("http", options),))
    if every:
        plans = (p._replace(every=min(p.every, every), deadline=min(p.deadline, every)) for p in settings.collect)
        settings = settings._replace(collect=tuple(plans))
    return settings


def _once(settings: Settings, root: str) -> None:
    host, clock = Host(root), SystemClock()
    sinks = open_sinks(settings, host, clock)
    Agent(settings, host, clock, sinks, once=True).step()
    for sink in sinks:
        sink.close()
    sys.stdout.flush()
