"""What a node could have given in an hour, and what became of it: used, given away, idle, down.

A node counts in an hour in which it says what it is made of, in which something runs there, or in which its scheduler
knows it. Down is what its scheduler says is down, drained or gone, as far as nothing was used there all the same.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jobsight.analyse.late import HOUR
from jobsight.analyse.tally import joined
from jobsight.collector import ParseError
from jobsight.formats import nodelist
from jobsight.schema.record import counter, gauge, record
from jobsight.schema.units import Count, Seconds
from jobsight.store.protocol import Store

# How far a node's make-up is looked for (seconds): it is said every hour, unless a site says otherwise.
MAKEUP = 2 * 86400.0
# How long a scheduler's word on a node holds.
HOLDS = 2 * HOUR
DOWN = frozenset({"DOWN", "ERROR", "UNKNOWN", "FAIL"})
# Flags of a node that runs no job now and gets none.
AWAY = frozenset({"DRAIN", "DRAINED", "MAINTENANCE", "MAINT", "FAIL"})
GONE = frozenset({"NOT_RESPONDING", "NO_RESPOND"})
HARDWARE = "SELECT cluster, node, time, cpus FROM hardware WHERE time >= ? AND time < ? ORDER BY time"
STATES = """SELECT cluster, time, nodes, state, flags, cpus FROM slurmnode WHERE time >= ? AND time < ?
ORDER BY time"""


@record
class Capacity:
    """An hour, which begins at this row's time, of one node, in CPU time. A row of no node says that the hour
    was made.
    """

    cpus: Count | None = gauge("Logical CPUs.", default=None)
    total: Seconds = counter("What there was.")
    used: Seconds = counter("Used by jobs.")
    allocated: Seconds = counter("Given to jobs; what was used where nothing is given to a job alone.")
    down: Seconds = counter("Not to be had, and neither used nor given.")
    idle: Seconds = counter("To be had and not used.")
    free: Seconds = counter("To be had and not given.")


class Word(NamedTuple):
    """What a scheduler said of a node."""

    time: float
    down: bool
    cpus: int | None


def places(store: Store, since: float, until: float) -> list[tuple[Any, ...]]:
    """Rows for the statement below: nodes by hour, and what nodes were last made of."""
    made: dict[tuple[str, str], int] = {}
    hours: dict[tuple[str, str, float], list[Any]] = {}
    around = (since - MAKEUP, until + MAKEUP)
    for cluster, node, time, cpus in store.query(HARDWARE, around, around):
        if time < until:
            made[cluster, node] = cpus
        else:
            # Jobs are older than the agent that first told of them: what it says next held before, too.
            made.setdefault((cluster, node), cpus)
        if since <= time < until:
            hours[cluster, node, time // HOUR * HOUR] = [cpus, None]
    short = {(cluster, name.partition(".")[0]): name for cluster, name in made}
    said = store.query(STATES, [since - HOLDS, until], (since - HOLDS, until))
    for (cluster, name), words in _words(said).items():
        node = name if (cluster, name) in made else short.get((cluster, name), name)
        for hour, cpus, down in _hours(words, since, until):
            known = hours.setdefault((cluster, node, hour), [made.get((cluster, node)) or cpus, None])
            known[1] = down * (known[0] or 0)
    blank = (None,) * 8
    # An hour that was made is known by a row of no node, also where there was nothing.
    marks = [since + number * HOUR for number in range(round((until - since) / HOUR))]
    return [
        *(("node", *blank, "", "", repr(hour), "0", None) for hour in marks),
        *(("node", *blank, cluster, node, repr(hour), _text(cpus), _text(down))
          for (cluster, node, hour), (cpus, down) in hours.items()),
        *(("machine", *blank, cluster, node, None, _text(cpus), None) for (cluster, node), cpus in made.items()),
    ]  # fmt: skip


def _words(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[str, str], list[Word]]:
    """By node, what is new: a row that says the same of the same nodes as a minute before says nothing, but once an
    hour it is taken all the same. Rows come in the order of time.
    """
    found: dict[tuple[str, str], list[Word]] = {}
    said: dict[str, tuple[float, set[tuple[Any, ...]], set[tuple[Any, ...]]]] = {}
    for cluster, time, nodes, state, flags, cpus in rows:
        last, now, before = said.get(cluster, (0.0, set(), set()))
        if time != last:
            now, before = set(), (now if last // HOUR == time // HOUR else set())
            said[cluster] = (time, now, before)
        word = Word(time, is_down(state, flags), cpus)
        now.add((nodes, *word[1:]))
        if state != "FUTURE" and (nodes, *word[1:]) not in before:
            for name in _expanded(nodes):
                found.setdefault((cluster, name), []).append(word)
    return found


def _expanded(nodes: str) -> list[str]:
    try:
        return nodelist.expand(nodes)
    except ParseError:
        return []


def is_down(state: str, flags: str | None) -> bool:
    """Whether no job can use a node. One that is drained while jobs still run there can be used by these."""
    marks = set((flags or "").split(","))
    return state in DOWN or bool(marks & GONE) or (state == "IDLE" and bool(marks & AWAY))


def _hours(words: list[Word], since: float, until: float) -> Iterator[tuple[float, int | None, float]]:
    """Each hour in which a word on a node was said: its CPUs, and the seconds it was down."""
    hour = since
    while hour < until:
        here = [word for word in words if hour - HOLDS <= word.time < hour + HOUR]
        if here and here[-1].time >= hour:
            # The first word of the hour holds from its beginning where there is none before.
            first = next((word for word in reversed(here) if word.time <= hour), here[0])
            later = [word for word in here if word.time > hour]
            starts = [hour, *(word.time for word in later), hour + HOUR]
            spans = zip([first, *later], starts[:-1], starts[1:], strict=True)
            yield hour, here[-1].cpus or first.cpus, sum(end - begin for word, begin, end in spans if word.down)
        hour += HOUR


def _text(number: float | None) -> str | None:
    return None if number is None else repr(number)


def capacities(since: float, until: float) -> str:
    return f"""WITH used AS (
  SELECT cluster, node, bucket * {HOUR!r} AS hour, coalesce(sum(used * part), 0) AS used,
    coalesce(sum(allocated * part), 0) AS allocated
  FROM {joined(since, until)} GROUP BY cluster, node, bucket),
known AS (SELECT cluster, node, CAST(hour AS FLOAT8) AS hour, CAST(cpus AS FLOAT8) AS cpus,
    coalesce(CAST(down AS FLOAT8), 0) AS down FROM label WHERE kind = 'node'),
machine AS (SELECT cluster, node, CAST(cpus AS FLOAT8) AS cpus FROM label WHERE kind = 'machine'),
counted AS (
  SELECT cluster, node, hour, max(cpus) AS cpus, max(down) AS down, max(used) AS used, max(allocated) AS allocated
  FROM (SELECT cluster, node, hour, cpus, down, 0.0 AS used, 0.0 AS allocated FROM known
    UNION ALL SELECT used.cluster, used.node, hour, machine.cpus, 0, used, allocated FROM used
    LEFT JOIN machine ON machine.cluster = used.cluster AND machine.node = used.node) AS both_kinds
  GROUP BY cluster, node, hour),
whole AS (
  SELECT *, coalesce(cpus * {HOUR!r}, greatest(used, allocated)) AS total FROM counted),
part AS (
  SELECT *, greatest(0, least(down, total - greatest(used, allocated))) AS away FROM whole)
SELECT cluster, node, '', hour, CAST(cpus AS BIGINT), total, used, allocated, away,
  greatest(0, total - away - used), greatest(0, total - away - allocated) FROM part"""
