"""Slurm's commands, as its collectors use them."""

from typing import Protocol

from jobsight.command import CommandError
from jobsight.drivers.scheduler import Errand
from jobsight.formats import sacct, sacctjson, slurmtext
from jobsight.host import Host

# Seconds since 1970, so that no hour is lost or doubled when clocks change.
VARIABLES = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}


# Bytes of text of one call; rows of it take three times as much for a moment.
MOST = 48 * 2**20


class Span(Protocol):
    """The options that say how often all jobs are asked for."""

    @property
    def survey(self) -> float: ...
    @property
    def overlap(self) -> float: ...


class Columns:
    """Which columns this release's sacct has; lives with a host."""

    def __init__(self) -> None:
        self.names = [*sacct.COLUMNS, *sacct.NEWER]


class Survey:
    """Until when all jobs were asked for, not only ends; lives with a host."""

    def __init__(self) -> None:
        self.until: float | None = None
        self.failed = False


def lived(host: Host, errand: Errand, since: float, until: float, options: Span) -> str:
    """What sacct says of a window: all jobs that lived in it now and then, in between only those that ended, because
    jobs that run are many and change little.
    """
    survey = host.keep(Survey)
    lately = survey.until is not None and 0 <= until - survey.until < options.survey
    if host.live and (lately or survey.failed):
        # After one that failed, perhaps because too many run, too: ends must not wait for it.
        survey.failed = False
        return accounting(host, errand, since, until, ends=True)
    if survey.until is not None:
        since = min(since, survey.until - options.overlap)
    survey.until, survey.failed = until, True
    text = accounting(host, errand, since, until)
    survey.failed = False
    return text


def document(host: Host, errand: Errand, since: float, until: float, options: Span) -> str:  # noqa: ARG001
    """The same as JSON, of all that lived in the window. Slurm writes the window down by its time format and reads it
    again, and can do that only with its own.
    """
    return errand.ask(sacctjson.command(since, until), variables={"TZ": "UTC"}, most=MOST)


def accounting(host: Host, errand: Errand, since: float, until: float, *, ends: bool = False) -> str:
    """What sacct says of a window. A column that a release does not know is left out from then on."""
    names = host.keep(Columns).names
    while True:
        command = sacct.command(slurmtext.mark(), names, since, until, ends=ends)
        try:
            return errand.ask(command, variables=VARIABLES, most=MOST)
        except CommandError as error:
            refused = next((name for name in names[2:] if f'"{name}"'.lower() in str(error).lower()), None)
            if refused is None or "nvalid field" not in str(error):
                raise
            names.remove(refused)
