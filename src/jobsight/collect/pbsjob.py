"""Jobs as PBS has them, in the columns `slurmjob` has.

Source: `qstat -f -F json`, see qstat(1B), for jobs that wait or run, and the server's accounting log for those that
ended since the last good run; on the machine pbs_server runs on, or where a setting says `here: true`. Who may not
read the log (it is root's) sees no ends.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from jobsight.collect.slurmjob import Batchjob
from jobsight.collector import collector
from jobsight.host import Host
from jobsight.schema.units import Seconds

DAY = 86400.0


class Options(NamedTuple):
    """Where and how it asks."""

    here: bool | None = None
    """Whether this machine asks; where not set, the one pbs_server runs on does."""
    user: str = "pbsdata"
    """Who may see everybody's jobs."""
    limit: Seconds = Seconds(8.0)
    """For a run's calls together."""
    overlap: Seconds = Seconds(60.0)
    """How long the log may be behind."""
    slice: Seconds = Seconds(5 * DAY)
    """The longest window read in one run."""
    history: Seconds = Seconds(DAY)
    """How far back to begin when nothing was ever read."""
    accounting: str = "/var/spool/pbs/server_priv/accounting"
    """Where the server writes its log, a file a day."""


@collector(every=60, runs=("qstat",), through=("setpriv", "sudo"))
def pbsjob(host: Host, options: Options) -> Iterator[Batchjob]:
    from jobsight.drivers import window
    from jobsight.drivers.scheduler import Errand, check_here

    check_here(host, options.here, "pbs_server.bin")
    errand = Errand(host, "pbsjob", options.limit, options.user)
    if errand.rests():
        host.miss("job", "late")
        return
    yield from window.fresh(host, "pbsjob", options, lambda since, until: rows(host, errand, options, since, until))


def rows(host: Host, errand: Any, options: Options, since: float, until: float) -> Iterator[Batchjob]:
    """The ends of a window, then all that waits or runs now."""
    from jobsight.formats import pbs

    found: list[dict[str, Any]] = []
    bad = 0
    for name in days(host, options.accounting.strip("/"), since, until):
        text = host.glimpse(f"{options.accounting.strip('/')}/{name}", "ended")
        # A copy is looked at long after: all that is in it.
        some, wrong = pbs.ended(text or "", since if host.live else 0.0, until if host.live else float("inf"))
        found, bad = found + some, bad + wrong
    some, wrong = pbs.queued(errand.ask(("qstat", "-f", "-F", "json"), variables={"TZ": "UTC"}))
    if bad + wrong:
        host.miss("job", "failed")
    for row in found + some:
        yield Batchjob(scheduler="pbs", **row)


def days(host: Host, path: str, since: float, until: float) -> list[str]:
    """The log's files that may tell of a window: they are named by the server's own date, 20261115."""
    from time import gmtime, strftime

    names = sorted(name for name in host.names(path) if name.isdecimal() and len(name) == 8)
    if not host.live:
        return names
    first, last = (strftime("%Y%m%d", gmtime(moment)) for moment in (since - DAY, until + DAY))
    return [name for name in names if first <= name <= last]
