"""Which job has which card, for the batch job exporter's flag `gpu_jobid_flag`.

In its order: the files of its prolog, named by a card's number or uuid and holding a job's; what the collector `gpu`
says, by our prolog, by the device files a job may open, or by whose processes are on the card; the environment of a
job's process. An environment may be left from another job, so it counts only for a card that nobody else speaks for.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from jobsight.collect.allocation import ENVIRON, grouped, witnesses
from jobsight.collect.gpu import Gpu
from jobsight.compat.batchmetrics import Owner
from jobsight.host import Host
from jobsight.ownership import named

LONGEST_FILE = 4096
VARIABLES = re.compile(rb"(?:^|(?<=\0))(SLURM_JOB_ID|SLURM_JOB_GPUS|SLURM_STEP_GPUS)=([^\0]*)\0")


class Devices:
    """What environments said of the jobs that are still here; lives with a host. One that does not tell is asked
    again after one scrape, two, four and so on: a job without cards must not cost a look at its processes each time.
    """

    def __init__(self) -> None:
        self.told: dict[str, tuple[str, ...]] = {}
        self.asked: dict[str, int] = {}

    def of(self, job: str, ask: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        times = self.asked[job] = self.asked.get(job, 0) + 1
        if job not in self.told and not times & (times - 1) and (found := ask()):
            self.told[job] = found
        return self.told.get(job, ())

    def keep_only(self, jobs: Mapping[str, Owner]) -> None:
        self.told = {job: found for job, found in self.told.items() if job in jobs}
        self.asked = {job: times for job, times in self.asked.items() if job in jobs}


def holders(host: Host, path: str, cards: Sequence[Gpu], owners: Mapping[str, Owner]) -> list[tuple[Gpu, Owner]]:
    """The cards that a job of Slurm's holds, each with its job."""
    devices = host.keep(Devices)
    devices.keep_only(owners)
    by_number = {owner.number: job for job, owner in owners.items()}
    held: dict[str, str] = {}
    disputed: set[str] = set()
    for uuid, jobs in claims(cards, mapped(host, path)).items():
        known = {by_number[number] for number in jobs if number in by_number}
        if len(known) == 1:
            held[uuid] = known.pop()
        elif known:
            disputed.add(uuid)
    for card in cards:
        if card.uuid not in disputed and card.scheduler == "slurm" and card.job in owners:
            held.setdefault(card.uuid, str(card.job))
    free = [card for card in cards if card.uuid and card.uuid not in held and card.uuid not in disputed]
    if free:
        said = [
            (word, job)
            for job, owner in owners.items()
            if job not in held.values()
            for word in devices.of(job, partial(asked, host, job, owner.number))
        ]
        for uuid, jobs in claims(free, said).items():
            if len(jobs) == 1:
                held[uuid] = jobs.pop()
    host.missed()
    return [(card, owners[held[card.uuid]]) for card in cards if card.uuid in held]


def mapped(host: Host, path: str) -> list[tuple[str, str]]:
    """The prolog's files: the card's number or uuid, and the job's number."""
    place = path.strip("/")
    found = []
    for name in host.names(place) if place else ():
        try:
            text = host.piece(f"{place}/{name}", LONGEST_FILE).decode("ascii", "replace")
        except OSError:
            continue
        found += [(name, number) for number in text.split()[:1] if number.isdecimal()]
    return found


def claims(cards: Iterable[Gpu], said: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Who claims which card, by uuid."""
    found: dict[str, set[str]] = {}
    for word, job in said:
        meant = [card for card in cards if means(card, word)]
        # A number that two makers' cards have names neither.
        if len({card.vendor for card in meant}) == 1:
            for card in meant:
                found.setdefault(card.uuid, set()).add(job)
    return found


def means(card: Any, word: str) -> bool:
    """By the number of its device file, as Slurm counts; by the library's where there is no other."""
    if card.minor is None and card.parent is None and word.isdecimal():
        return card.ordinal is not None and int(card.ordinal) == int(word)
    return named(card, word)


def asked(host: Host, job: str, number: str) -> tuple[str, ...]:
    """The cards in the environment of one of the job's processes; the job's word before the step's."""
    pids = grouped(host).get(("slurm", job), list)()
    for witness in witnesses(host, ("slurm", job), pids):
        try:
            environ = host.piece(f"proc/{witness.pid}/environ", ENVIRON)
        except OSError:
            continue
        if words := devices_of(environ, number):
            return words
    return ()


def devices_of(environ: bytes, number: str) -> tuple[str, ...]:
    """Only of an environment that names just this job."""
    first: dict[bytes, bytes] = {}
    for name, value in VARIABLES.findall(environ):
        first.setdefault(name, value)
    if first.get(b"SLURM_JOB_ID", b"").decode("ascii", "replace") != number:
        return ()
    words = first.get(b"SLURM_JOB_GPUS") or first.get(b"SLURM_STEP_GPUS") or b""
    return tuple(word for word in words.decode("ascii", "replace").split(",") if word)
