"""Whose a card is. What was allocated comes first: a card that a job holds and does not use is that job's.

In this order: what the prolog wrote down, by uuid or by the number of the device file; which device files the job's
control group may open (v1; v2 does not say); whose processes are on the card, if they are all of one job.
"""

from typing import NamedTuple

from jobsight.collect.cgroup import places, tree
from jobsight.collect.process import Process
from jobsight.drivers.card import Card, Reading
from jobsight.formats.cgrouppath import job_of_process
from jobsight.host import Host
from jobsight.prologs import Name, job_of, prologs
from jobsight.roster import Roster

# How device files are numbered, by maker. AMD's and Intel's number is also that of screens, with other minor numbers.
MAJORS = {"nvidia": 195, "amd": 226, "intel": 226}
# /dev/nvidiactl and the like, which every job may open.
HIGHEST_MINOR = 128
DEVICES = "sys/fs/cgroup/devices"
# Of a process that is no job's, where only control groups tell.
NOBODY: Name = ("", "")


class Owner(NamedTuple):
    """The job that has a card, and how that is known."""

    scheduler: str
    job: str
    by: str


def owners(host: Host, reading: Reading, path: str) -> dict[str, Owner]:
    """By uuid. Two jobs that both say they have a card are shown as neither's: then nobody knows."""
    jobs = running(host)
    known: dict[str, Owner] = by_process(host, reading)
    for by, claims in (
        ("devices", opened(host, reading, jobs)),
        ("allocation", allocated(host, reading, jobs, path)),
    ):
        for uuid, names in claims.items():
            known.pop(uuid, None)
            if len(names) == 1:
                (name,) = names
                known[uuid] = Owner(*name, by)
    return known


def running(host: Host) -> dict[Name, str]:
    """Jobs with a control group, and its path, as the process collector knows them."""
    seen = list(host.keep(Roster).seen.values())
    if not seen:  # it has not run yet, or never does: the exporter reads no processes
        return {(group.scheduler, group.job): group.path for group in places(host, tree(host), steps=False)}
    return {(one.group.scheduler, one.group.job): one.group.path for one in seen if one.group}


def by_process(host: Host, reading: Reading) -> dict[str, Owner]:
    roster = host.keep(Roster)
    names: dict[str, set[Name]] = {}
    for holder in reading.holders:
        seen = roster.seen.get(str(holder.pid))
        if seen is not None and isinstance(seen.row, Process):
            names.setdefault(holder.uuid, set()).add((seen.row.scheduler, seen.row.job))
        elif not roster.seen and (text := host.glimpse(f"proc/{holder.pid}/cgroup")):
            group = job_of_process(text)
            names.setdefault(holder.uuid, set()).add((group.scheduler, group.job) if group else NOBODY)
    return {
        uuid: Owner(*next(iter(found)), "process")
        for uuid, found in names.items()
        if len(found - {NOBODY}) == len(found) == 1
    }


def opened(host: Host, reading: Reading, jobs: dict[Name, str]) -> dict[str, set[Name]]:
    """Which jobs' control groups let them open which cards: lines `c 195:0 rwm`."""
    found: dict[str, set[Name]] = {}
    if not host.exists(DEVICES):
        return found
    for name, path in jobs.items():
        lines = (host.glimpse(f"{DEVICES}/{path}/devices.list") or "a *:* rwm").splitlines()
        if any(line.startswith("a ") or ":* " in line for line in lines):
            continue  # it may open everything: nobody was kept from anything
        for card in reading.cards:
            if any(line.startswith(f"c {MAJORS.get(card.vendor)}:{card.minor} ") for line in lines):
                found.setdefault(card.uuid, set()).add(name)
    return found


def allocated(host: Host, reading: Reading, jobs: dict[Name, str], path: str) -> dict[str, set[Name]]:
    """What the prolog's files say: `devices=0,1` or `devices=GPU-…`."""
    found: dict[str, set[Name]] = {}
    for scheduler, labels in prologs(host, path):
        for word in (labels.devices or "").replace(" ", ",").split(","):
            meant = [card for card in reading.cards if word and named(card, word)]
            # A number that two makers' cards have names neither.
            if len({card.vendor for card in meant}) == 1:
                for card in meant:
                    found.setdefault(card.uuid, set()).add(job_of(scheduler, labels, jobs))
    return found


def named(card: Card, word: str) -> bool:
    """Whether a scheduler's word means this card. Its numbers are those of device files; an instance has none."""
    if word.isascii() and word.isdecimal():
        return card.parent is None and card.minor == int(word)
    return bool(card.uuid) and card.uuid.lower() == word.lower()
