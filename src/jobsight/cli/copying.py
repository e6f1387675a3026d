"""`jobsight store copy`: one store into another."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from jobsight.cli.arguments import FailedError, WrongUseError
from jobsight.cli.load import Progress
from jobsight.formats.number import duration
from jobsight.settings import DATABASES

if TYPE_CHECKING:
    from jobsight.store.side import Copy, Side


def copied(source: str, target: str) -> int:
    """Copy, tell, and say whether both are alike: exit code."""
    from jobsight.store.protocol import StoreError
    from jobsight.store.side import Copy

    if source == target:
        raise WrongUseError("--from and --to are one and the same")
    if not source.startswith(DATABASES) and not os.path.isdir(source):
        raise FailedError(f"there is no store in {source}")
    try:
        with ExitStack() as opened:
            left, right = (opened.enter_context(_side(place)) for place in (source, target))
            return _told(Copy(left, right, _records()))
    except StoreError as error:
        raise FailedError(str(error)) from None


def _told(copy: "Copy") -> int:
    progress = Progress(sys.stderr, "rows")
    progress.total = copy.total
    done = 0

    def tell(number: int) -> None:
        nonlocal done
        done += number
        progress.show(done, done)

    try:
        copy.rows(tell)
        jobs = copy.jobs()
    except KeyboardInterrupt:
        progress.say(f"stopped after {done} rows, which are kept; run again to go on")
        raise
    took = progress.end()
    found = copy.compared()
    for table, (number, alike) in found.items():
        print(f"  {table:<12} {number:>14}  {'the same count and sums' if alike else 'DIFFERENT'}")
    there = f", {copy.present} were there" if copy.present else ""
    print(f"{done} rows copied{there}; {jobs} jobs; {duration(took)}.")
    if all(alike for _, alike in found.values()):
        return 0
    print("jobsight: the stores differ: was one of them written to meanwhile? Run again", file=sys.stderr)
    return 1


@contextmanager
def _side(place: str) -> "Iterator[Side]":
    """A store that nobody else writes to while this lasts."""
    from jobsight.analyse.keeper import open_database, open_store
    from jobsight.store.side import tables

    kinds, now = tables(_records()), time.time()
    if place.startswith(DATABASES):
        database = open_database(place)
        from jobsight.store import pgside

        with closing(database), pgside.opened(database, place, kinds, now) as right:
            yield right
        return
    from jobsight.store import embeddedside

    with closing(open_store(place)) as store, embeddedside.opened(store, place, kinds, now) as left:
        yield left


def _records() -> dict[str, type]:
    from jobsight import catalogue
    from jobsight.analyse.keeper import DERIVED

    return {found.name: found.record for found in catalogue.collectors()} | DERIVED
