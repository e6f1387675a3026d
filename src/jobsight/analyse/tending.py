"""What a store needs now and then: late messages counted, rollups made, files written, old rows dropped."""

from jobsight import catalogue
from jobsight.analyse.keeper import DERIVED
from jobsight.analyse.recount import recount
from jobsight.analyse.slice import roll
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


def settle(store: Store, now: float) -> None:
    """Count what came late, and make what is due of it."""
    recount(store)
    roll(store, now)


def retain(store: Store, retention: Retention, now: float) -> tuple[int, int]:
    """Drop what is too old; how many rows and jobs."""
    rows = sum(store.forget(now - keep, names) for keep, names in retention.times(tables()).items())
    jobs = 0 if retention.jobs is None else store.forget_jobs(now - retention.jobs)
    return rows, jobs
