"""Makes the tables that utilisation is read from: `tally` and `capacity` of hours that are over, `stint` of jobs.

Hours whose usage changed are made again with slices and shares (`analyse.slice.roll`). Others come here by
themselves: an hour in which nothing ran has no usage, and is idle all the same. Made again everything is the same.
"""

from collections.abc import Iterator

from jobsight.analyse import capacity, stint, tally
from jobsight.analyse.late import HOUR
from jobsight.analyse.slice import SETTLES
from jobsight.store.protocol import REACH, JobQuery, Store

DAY = 24 * HOUR
# Days made in one go: what is met for the first time has a year, and others wait meanwhile.
PATIENCE = 10
# Schedulers tell of an end long after it, and jobs that are silent come back: so long stints are made again.
UNSETTLED = 2 * DAY
NEWEST = "SELECT max(time) FROM capacity"
OLDEST = """SELECT min(time) FROM (SELECT min(time) AS time FROM hardware
UNION ALL SELECT min(time) AS time FROM usage) AS first_rows"""


def make(store: Store, since: float, until: float, now: float) -> None:
    """Make the tables of a time, from hour to hour. The caller holds the store still."""
    settle(store, since, until, now)
    if since < _complete(store):
        # What it was made of is gone in part: made again, nodes that were idle would not be there.
        return
    documents = store.jobs(JobQuery(since=since, until=until, limit=10**9), until)
    places = capacity.places(store, since, until)
    labels = [*tally.labels(documents), *places]
    span = (since, until)
    store.refill("tally", span, tally.tallies(since, until), labels, tally.NAMES)
    store.refill("capacity", span, capacity.capacities(since, until), labels, tally.NAMES)


def catch_up(store: Store, now: float) -> int:
    """Make what is over and not made; how many hours."""
    end = (now - SETTLES) // HOUR * HOUR
    begin = _begin(store, end)
    if begin is None or begin >= end:
        return 0
    made = 0
    for since, until in list(_days(begin, end))[:PATIENCE]:
        with store.still() as free:
            if not free:
                return made
            make(store, since, until, now)
            if since == begin:
                settle(store, since - UNSETTLED, since, now)
        made += round((until - since) / HOUR)
    return made


def settle(store: Store, since: float, until: float, now: float) -> None:
    """Make the stints of a time. The caller holds the store still."""
    # What ended in it had begun before its end.
    documents = store.jobs(JobQuery(since=since, until=until, limit=10**9), now)
    given = stint.rows(documents, since, until, now)
    # A job's energy is by the hour, from its beginning on.
    first = max(since - REACH, min((float(row[stint.NAMES.index("started")] or 0) for row in given), default=since))
    reads = (min(first // HOUR * HOUR, since), until)
    store.refill("stint", (since, until), stint.stints(*reads), given, stint.NAMES, reads)


def _begin(store: Store, end: float) -> float | None:
    """From when on nothing is made; None if there is nothing to make it of."""
    # As a rule it was made an hour ago; where not, there are files of a year to look into.
    for days in (2, 400):
        lately = (end - days * DAY, float("inf"))
        ((newest,),) = store.query(NEWEST, (), lately)
        if newest is not None:
            return float(newest) + HOUR
    ((oldest,),) = store.query(OLDEST, (), lately)
    return None if oldest is None else max(max(float(oldest), lately[0]) // HOUR * HOUR, _complete(store))


def _complete(store: Store) -> float:
    """The first hour of which all is there that these tables are made of."""
    return -(-max(map(store.horizon, ("usage", "hardware", "slurmnode"))) // HOUR) * HOUR


def _days(since: float, until: float) -> Iterator[tuple[float, float]]:
    while since < until:
        yield since, min(until, since + DAY)
        since += DAY
