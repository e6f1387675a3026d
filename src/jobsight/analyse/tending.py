"""What a store needs now and then: late messages counted, rollups made, files written, old rows dropped."""

from functools import partial

from jobsight import catalogue
from jobsight.analyse import lustreroll
from jobsight.analyse.chronicle import catch_up, make
from jobsight.analyse.energy import roll as roll_energy
from jobsight.analyse.keeper import DERIVED
from jobsight.analyse.recount import recount
from jobsight.analyse.slice import roll
from jobsight.metering import USUAL, Energy
from jobsight.serving import Lustre
from jobsight.store.protocol import Store
from jobsight.store.retention import MARKS, Retention


def tables() -> list[str]:
    """Every table of a store whose rows grow old."""
    return ["run", *catalogue.collector_names(), *(name for name in DERIVED if name not in MARKS)]


def tend(store: Store, retention: Retention, now: float) -> None:
    """In this order: what is counted late changes rollups, and both are quicker before rows are in files."""
    settle(store, now)
    store.compact(now)
    retain(store, retention, now)


def settle(store: Store, now: float, lustre: Lustre | None = None, energy: Energy = USUAL) -> None:
    """Count what came late, and make what is due of it."""
    recount(store)
    catch_up(store, now)
    roll(store, now, partial(made, now=now, energy=energy))
    lustreroll.roll(store, lustre)


def made(store: Store, since: float, until: float, now: float, energy: Energy = USUAL) -> None:
    """What is made of hours besides slices and shares."""
    # A job that is over is told with what it took.
    roll_energy(store, since, until, energy)
    make(store, since, until, now=now)


def retain(store: Store, retention: Retention, now: float) -> tuple[int, int]:
    """Drop what is too old; how many rows and jobs."""
    rows = sum(store.forget(now - keep, names) for keep, names in retention.times(tables()).items())
    jobs = 0 if retention.jobs is None else store.forget_jobs(now - retention.jobs)
    if retention.jobs is not None:
        store.findings.forget(now - retention.jobs)
    return rows, jobs
