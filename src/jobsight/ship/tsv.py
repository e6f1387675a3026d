"""Who uses how much, as plain text for people without a server: `<path>/yyyy/mm/dd/<node>.tsv`, UTC days.

One line for each user, project and command at each sample of `process`, its processes added up; other messages leave
no trace but `allocation`, which knows a job's account, here called its project. What is not known is `-`.

The header says what CPU is. `cpu_recent` is cores used since the last sample; processes that ended since then are not
in it, and the first sample has no last. `cpu_lifetime`, of an agent that runs once, is cores used on average since
each process started. Memory is the bytes that are the processes' own: what they share would be counted many times.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from jobsight import files
from jobsight.schema.message import Message, Status
from jobsight.schema.units import Seconds
from jobsight.ship.sink import Place, Sink

DAY = 86400
UNKNOWN = "-"
# The kernel counts start times in hundredths, and looking at all processes takes a moment: one that started so long
# before the last sample was there, and what it used before we saw it is not what it used since.
SLACK = 1.0


class Options(NamedTuple):
    """Where the files stand, and for how long."""

    path: str
    keep: Seconds | None = None


Subject = tuple[str, str, str]
"""User, project and command: what a line is about."""


class Used(NamedTuple):
    """What some processes used; None if it is not known of one of them."""

    cpu: float | None
    memory: int | None


class Sample(NamedTuple):
    """CPU time of each process, by pid and start, when the machine was up for so long."""

    uptime: float
    cpu: dict[tuple[int, float], float]


class Tsv:
    def __init__(self, options: Options, place: Place) -> None:
        self._options = options
        self._tally = place.tally
        self._name = file_name(place.node)
        self._day = ""
        self._last: Sample | None = None
        self._projects: dict[tuple[str, str], str] = {}

    def send(self, message: Message) -> None:
        if message.status is not Status.OK:
            return
        if message.collector == "allocation":
            self._projects = projects(message)
        if message.collector != "process":
            return
        now = sample(message)
        used = add_up(message, now, self._last, self._projects)
        self._last = now
        self._write(message, used)
        self._tally.sent += 1

    def close(self) -> None:
        """Every line is in its file already."""

    def _write(self, message: Message, used: dict[Subject, Used]) -> None:
        day = time.strftime("%Y/%m/%d", time.gmtime(message.time))
        folder = os.path.join(self._options.path, day)
        path = os.path.join(folder, self._name)
        # Each time: people tidy up, and a file that is gone begins anew.
        new = not os.path.exists(path) or not os.path.getsize(path)
        if new:
            files.make_directory(folder)
        # One write for all: a disk that fills up in the middle leaves no half of a sample.
        text = "".join([header(message) if new else "", *lines(message, used)])
        if text:
            files.append(path, text.encode())
        if day != self._day:
            self._day = day
            self._tidy(message.time)

    def _tidy(self, now: float) -> None:
        if self._options.keep is None:
            return
        try:
            remove_old(self._options.path, self._name, now - self._options.keep)
        except OSError as error:
            # The sample is written: that old files stay is no reason to call it lost.
            print(f"jobsight: tsv: old files stay: {error}", file=sys.stderr, flush=True)


def file_name(node: str) -> str:
    """A node's name cannot leave the folder."""
    return node.replace("/", "_").replace("\0", "_") + ".tsv"


def rows(message: Message, *names: str) -> Iterator[tuple[Any, ...]]:
    """Some columns as rows. A message without rows has no columns either."""
    return zip(*(message.rows.get(name, ()) for name in names), strict=True)


def projects(message: Message) -> dict[tuple[str, str], str]:
    """The account of each job that has one, by scheduler and job."""
    found = rows(message, "scheduler", "job", "account")
    return {(scheduler, job): account for scheduler, job, account in found if account}


def sample(message: Message) -> Sample:
    found = rows(message, "pid", "started", "cpu_user", "cpu_system")
    return Sample(message.uptime, {(pid, started): user + system for pid, started, user, system in found})


def add_up(
    message: Message, now: Sample, last: Sample | None, known: dict[tuple[str, str], str]
) -> dict[Subject, Used]:
    """What the processes of each user, project and command used."""
    names = ("pid", "started", "owner", "scheduler", "job", "command", "memory_anon")
    found: dict[Subject, Used] = {}
    for pid, started, owner, scheduler, job, command, memory in rows(message, *names):
        subject = (owner, known.get((scheduler, job), UNKNOWN), command)
        cpu = lifetime(now, pid, started) if message.every is None else recent(now, last, pid, started)
        before = found.get(subject, Used(0.0, 0))
        found[subject] = Used(
            None if cpu is None or before.cpu is None else before.cpu + cpu,
            None if memory is None or before.memory is None else before.memory + memory,
        )
    return found


def recent(now: Sample, last: Sample | None, pid: int, started: float) -> float | None:
    """Cores a process used since the last sample."""
    if last is None or now.uptime <= last.uptime:
        return None
    before = last.cpu.get((pid, started))
    if before is None:
        if started < last.uptime - SLACK:
            return None
        before = 0.0
    return max(0.0, now.cpu[pid, started] - before) / (now.uptime - last.uptime)


def lifetime(now: Sample, pid: int, started: float) -> float | None:
    """Cores a process used on average since it started."""
    used, age = now.cpu[pid, started], now.uptime - started
    if age <= 0:
        return None if used else 0.0
    return used / age


def header(message: Message) -> str:
    cpu = "cpu_lifetime" if message.every is None else "cpu_recent"
    return f"time\thost\tuser\tproject\tcommand\t{cpu}\tmemory\n"


def lines(message: Message, used: dict[Subject, Used]) -> Iterator[str]:
    """Each with as many cells as the header, whatever people call their programs."""
    instant = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(message.time))
    for subject, (cpu, memory) in sorted(used.items()):
        names = (escape(name) for name in (message.origin.node, *subject))
        numbers = (UNKNOWN if cpu is None else f"{cpu:.3f}", UNKNOWN if memory is None else str(memory))
        yield "\t".join((instant, *names, *numbers)) + "\n"


def escape(name: str) -> str:
    r"""Tabs, newlines and what else does not show as \t, \n, \x1b; a backslash as two."""
    if name.isprintable() and "\\" not in name:
        return name
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in name)


def remove_old(path: str, name: str, oldest: float) -> None:
    """Remove this node's files whose day ended before `oldest`, and the folders this leaves empty.

    Nothing but `yyyy/mm/dd/<name>`, and no link is followed: what people keep beside it or point it at is theirs.
    """
    last = time.strftime("%Y/%m/%d", time.gmtime(oldest - DAY))
    for year in _folders(path, "[0-9]{4}"):
        for month in _folders(os.path.join(path, year), "[0-9]{2}"):
            for day in _folders(os.path.join(path, year, month), "[0-9]{2}"):
                if f"{year}/{month}/{day}" <= last:
                    _remove(path, (year, month, day), name)


def _folders(path: str, pattern: str) -> list[str]:
    with os.scandir(path) as found:
        return sorted(
            one.name for one in found if re.fullmatch(pattern, one.name) and one.is_dir(follow_symlinks=False)
        )


def _remove(path: str, parts: tuple[str, ...], name: str) -> None:
    file = os.path.join(path, *parts, name)
    if os.path.islink(file) or not os.path.isfile(file):
        return
    os.unlink(file)
    for depth in range(len(parts), 0, -1):
        with suppress(OSError):  # not empty: another node's files, or other people's
            os.rmdir(os.path.join(path, *parts[:depth]))


def open_sink(options: Options, place: Place) -> Sink:
    return Tsv(options, place)
