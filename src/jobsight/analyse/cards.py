"""The GPUs a job held, and how busy each was. A card is one of a node's: card 0 of two nodes is two cards."""

from msgspec import Struct

from jobsight.analyse.job import LOCAL
from jobsight.analyse.summary import Summary
from jobsight.store.protocol import Store

# Of a card's time and memory: below both it did nothing for the job.
IDLE, EMPTY = 0.01, 0.02
# Between two looks further apart than this many of the usual, nothing is known (seconds).
GAP = 600.0

CARDS = f"""
SELECT node, uuid, sum(utilization * span) / nullif(sum(CASE WHEN utilization IS NOT NULL THEN span END), 0),
  max(utilization), max(memory_used), max(memory_total),
  sum(power * span) / nullif(sum(CASE WHEN power IS NOT NULL THEN span END), 0), count(*)
FROM (SELECT node, uuid, utilization, memory_used, memory_total, power,
    least({GAP!r}, coalesce(time - lag(time) OVER (PARTITION BY node, uuid ORDER BY time), 1.0)) AS span
  FROM gpu WHERE cluster = ? AND scheduler = ? AND job IN (?, ?) AND time BETWEEN ? AND ?) AS looks
GROUP BY node, uuid ORDER BY node, uuid
"""


class Card(Struct):
    """One card over the time it was held."""

    node: str
    uuid: str
    busy: float | None
    """Part of the time in which it computed, weighted by time."""
    busy_peak: float | None
    memory_peak: int | None
    memory_total: int | None
    power: float | None
    samples: int

    @property
    def used(self) -> bool:
        held = self.memory_peak / self.memory_total if self.memory_peak and self.memory_total else 0.0
        return (self.busy_peak or 0.0) > IDLE or held > EMPTY


def cards(store: Store, figures: Summary) -> list[Card]:
    """Held by the job, whether it used them or not."""
    rows = store.query(
        CARDS,
        [figures.cluster, figures.scheduler, figures.id, figures.number or figures.id, figures.started, figures.seen],
        (figures.started, figures.seen),
    )
    # A session's number is one machine's: another machine has one of that number, too, and it is another's.
    return [Card(*row) for row in rows if figures.scheduler not in LOCAL or row[0] in figures.nodes]
