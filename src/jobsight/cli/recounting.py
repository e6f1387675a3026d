"""`jobsight store recount`: usage and jobs made again from the rows that were sent."""

import argparse
import sys
import time
from functools import partial

from jobsight.analyse.keeper import open_database, open_store
from jobsight.analyse.place import mark
from jobsight.analyse.recount import recount
from jobsight.analyse.slice import roll
from jobsight.analyse.tending import made
from jobsight.cli.arguments import FailedError, WrongUseError
from jobsight.cli.load import Progress
from jobsight.formats import when
from jobsight.metering import USUAL, Energy
from jobsight.settings import DATABASES
from jobsight.store.protocol import InUseError, JobQuery, Store, StoreError

# Of jobs that are left alone, how many are named.
TOLD = 10


def recounted(place: str, given: argparse.Namespace, energy: Energy = USUAL) -> int:
    """Count again and tell: exit code."""
    now = time.time()
    try:
        since, until = when.instant(given.since, now), when.instant(given.until, now, end=True)
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    try:
        store: Store = open_database(place) if place.startswith(DATABASES) else open_store(place)
    except InUseError as error:
        raise FailedError(f"{error}; stop the server first") from None
    except StoreError as error:
        raise FailedError(str(error)) from None
    try:
        store.digest()
        _mark(store, since, until, given.job)
        return _told(store, now, energy)
    except StoreError as error:
        raise FailedError(str(error)) from None
    finally:
        store.close()


def _mark(store: Store, since: float, until: float, job: str | None) -> None:
    if job is None:
        mark(store, since, until)
        return
    found = [document["key"] for document in store.jobs(JobQuery(id=job), until)]
    keys = found or [document["key"] for document in [store.job(job)] if document]
    if not keys:
        raise FailedError(f"no job {job} is known")
    for key in keys:
        mark(store, since, until, key)


def _told(store: Store, now: float, energy: Energy) -> int:
    progress = Progress(sys.stderr, "nodes")

    def show(done: int, total: int) -> None:
        progress.total = total
        progress.show(done, done)

    done = recount(store, show)
    roll(store, now, partial(made, now=now, energy=energy))
    progress.end()
    nodes = f"{done.nodes} node{'' if done.nodes == 1 else 's'}"
    print(f"{done.jobs} job{'' if done.jobs == 1 else 's'} on {nodes} counted again.")
    if done.left:
        some = ", ".join(sorted(done.left)[:TOLD]) + (", …" if len(done.left) > TOLD else "")
        print(f"{len(done.left)} left as they were, because rows they are made of are gone: {some}")
    return 0
