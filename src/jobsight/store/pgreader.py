"""What is asked of a PostgreSQL store besides jobs."""

from collections.abc import Iterable
from typing import Any

from jobsight.store.dialect import translated
from jobsight.store.pool import Pool
from jobsight.store.protocol import Node

HEADS = """SELECT cluster, node, boot, good_time, good_uptime, good_every FROM latest
WHERE collector = ? AND good_time IS NOT NULL"""
# A week is enough to call a node known; what has been silent longer is not on the start page.
NODES = """
SELECT cluster, node, max(time) FILTER (WHERE recent), coalesce(arg_max(every, known), 30),
  arg_max(cpus, good_time), arg_max(total, lately), arg_max(available, lately), arg_max(load1, lately),
  arg_max(model, good_time), count(*) FILTER (WHERE troubled)
FROM (SELECT *, time BETWEEN $now - 7 * 86400 AND $now + 300 AS recent,
    CASE WHEN time BETWEEN $now - 7 * 86400 AND $now + 300 THEN time END AS known,
    CASE WHEN good_time BETWEEN $now - 7 * 86400 AND $now + 300 THEN good_time END AS lately,
    (figures->>'cpus')::bigint AS cpus, (figures->>'total')::bigint AS total,
    (figures->>'available')::bigint AS available, (figures->>'load1')::double precision AS load1,
    figures->>'model' AS model,
    status IN ('failed', 'late') AND time BETWEEN $now - 86400 AND $now + 300 AND 1 = row_number()
      OVER (PARTITION BY cluster, node, collector, time > $now + 300 ORDER BY time DESC) AS troubled
  FROM latest) AS said
GROUP BY cluster, node HAVING bool_or(recent) ORDER BY cluster COLLATE "C", node COLLATE "C"
"""


class Reader:
    """See `store.counter.Rows`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        return self._pool.query(translated(sql), list(values))

    def heads(self, collector: str) -> list[tuple[Any, ...]]:
        return self.query(HEADS, [collector])

    def nodes(self, now: float) -> list[Node]:
        return [Node(*row) for row in self.query(NODES.replace("$now", repr(now)))]
