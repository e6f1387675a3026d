"""Sample this machine and send what is seen, until stopped.

SIGTERM and Ctrl-C stop it cleanly, SIGHUP reloads the settings. `--once` runs every collector once, for cron;
the lock file keeps two from running at a time.
"""

import sys
from dataclasses import replace

from jobsight import catalogue
from jobsight.agent.service import Agent, Signals, open_sinks, serve
from jobsight.cli.arguments import add_root, add_settings, parser, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.files import Lock
from jobsight.host import Host
from jobsight.schema.units import Seconds
from jobsight.settings import Destination, Settings


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("agent", __doc__)
    add_settings(accept)
    add_root(accept)
    accept.add_argument("--once", action="store_true", help="run every collector once and stop")
    accept.add_argument("--url", help="send to this server, in place of the sinks in the settings")
    accept.add_argument("--every", metavar="SECONDS", type=float, help="sample at least this often")
    accept.add_argument("--leash", action="store_true", help="stop when standard input is closed")
    given = accept.parse_args(arguments)

    def load() -> Settings:
        return _adjusted(settings_of(given.settings), given.url, given.every)

    settings = load()
    with Lock(settings.lock):
        if given.once:
            _once(settings, given.root)
        else:
            serve(load, given.root, SystemClock(), Signals(leash=given.leash))
    return 0


def _adjusted(settings: Settings, url: str | None, every: float | None) -> Settings:
    if url:
        options = catalogue.sink("http").Options(url=url, window=Seconds(1.0))
        settings = replace(settings, sinks=(Destination("http", options),))
    if every:
        plans = (p._replace(every=min(p.every, every), deadline=min(p.deadline, every)) for p in settings.collect)
        settings = replace(settings, collect=tuple(plans))
    return settings


def _once(settings: Settings, root: str) -> None:
    host, clock = Host(root), SystemClock()
    sinks = open_sinks(settings, host, clock)
    Agent(settings, host, clock, sinks).step()
    for sink in sinks:
        sink.close()
    sys.stdout.flush()
