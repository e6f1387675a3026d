"""The statements that make Lustre's tables, in the SQL of either engine. Pure. See `analyse.lustre`."""

from jobsight.analyse.increment import grown
from jobsight.analyse.lustre import COUNTERS, HOUR, OPERATIONS, STEP, SYSTEM, TABLES, counters, whole

Span = tuple[float, float]
# A target was seen between two good scans that are not further apart than this: entries may come and go meanwhile.
GAP = 900.0
# Nothing is asked for so often in a step.
MOST = 2**53
# What says who: the columns of a slice between its stamp and its counters.
WHO = ("target", "job_key", "job", "owner", "account", "host", "executable", "repaired")


def slices(span: Span, reads: Span, *, dropped: bool = False) -> str:
    """Increments cut where a step ends, and told whose they are; those of the system may be `dropped`."""
    rows = " UNION ALL ".join(
        f"({grown(table, counters(kind), list(COUNTERS), reads, span[0])})" for kind, table in TABLES.items()
    )
    label = "coalesce(placed.{0}, known.{0}, '')"
    said = {name: label.format(name) for name in WHO}
    said["target"] = "piece.target"
    said["executable"] = f"CASE WHEN known.owner = '{SYSTEM}' THEN '' ELSE coalesce(piece.executable, '') END"
    same = "{0}.cluster = piece.cluster AND {0}.target = piece.target AND {0}.entry = piece.entry"
    some = " OR ".join(f"{name} > 0" for name in COUNTERS)
    return f"""SELECT cluster, '', '', bucket * {STEP!r}, {", ".join(WHO)}, count(DISTINCT entry),
  {", ".join(_summed(name) for name in COUNTERS)}
FROM (SELECT piece.cluster, bucket, entry_name AS entry,
    {", ".join(f"{value} AS {name}" for name, value in said.items())},
    {", ".join(f"{_part(name)} AS {name}" for name in COUNTERS)}
  FROM (SELECT *, entry AS entry_name,
      CASE WHEN length > 0 THEN (greatest(bucket * {STEP!r}, begin_time) - begin_time) / length ELSE 0 END AS early,
      CASE WHEN length > 0 THEN (least((bucket + 1) * {STEP!r}, time) - begin_time) / length ELSE 1 END AS upto
    FROM (SELECT *, time - begin_time AS length FROM ({rows}) AS increments
      WHERE time > {span[0]!r} AND begin_time < {span[1]!r} AND ({some})) AS interval_rows
    CROSS JOIN LATERAL {_steps(span, "begin_time", "time")} AS steps (bucket)) AS piece
  LEFT JOIN label AS known ON {same.format("known")} AND known.step = ''
  LEFT JOIN label AS placed ON {same.format("placed")} AND placed.step = CAST(bucket AS VARCHAR)) AS told
WHERE ({some}){f" AND owner <> '{SYSTEM}'" if dropped else ""} GROUP BY cluster, bucket, {", ".join(WHO)}"""


def totals(span: Span, reads: Span) -> str:
    """Slices by target; nothing was asked where a target was seen and there are none."""
    load = f"""SELECT cluster, target, time, sum(entries) AS entries,
    {", ".join(f"{_summed(name)} AS {name}" for name in COUNTERS)}
  FROM lustreslice WHERE time >= {span[0]!r} AND time < {span[1]!r} GROUP BY cluster, target, time"""
    scans = f"""SELECT cluster, target, kind, bucket * {STEP!r} AS time,
    sum(least((bucket + 1) * {STEP!r}, until) - greatest(bucket * {STEP!r}, since)) AS observed
  FROM (SELECT cluster, target, kind, scanned_at AS until,
      lag(scanned_at) OVER (PARTITION BY cluster, target, kind ORDER BY scanned_at) AS since
    FROM lustrescan WHERE ok AND time >= {reads[0]!r} AND time < {reads[1]!r}) AS scans
  CROSS JOIN LATERAL {_steps(span, "since", "until")} AS steps (bucket)
  WHERE until - since <= {GAP!r} AND until > since AND until > {span[0]!r} AND since < {span[1]!r}
  GROUP BY cluster, target, kind, bucket"""
    kind = "coalesce(kind, CASE WHEN target LIKE '%-MDT%' THEN 'mdt' ELSE 'ost' END)"
    zero = {name: [kind for kind in TABLES if name in counters(kind)] for name in COUNTERS}
    counted = [
        f"coalesce({name}, CASE WHEN {kind} IN ({', '.join(map(repr, kinds))}) THEN 0 END)"
        for name, kinds in zero.items()
    ]
    return f"""SELECT cluster, '', '', time, target, {kind}, coalesce(observed, 0),
  CAST(coalesce(entries, 0) AS BIGINT), {", ".join(counted)}
FROM ({load}) AS load FULL JOIN ({scans}) AS seen USING (cluster, target, time)"""


def shares(span: Span) -> str:
    """Slices by hour and user."""
    return f"""SELECT cluster, '', '', floor(time / {HOUR!r}) * {HOUR!r}, target, owner, account,
  count(DISTINCT coalesce(nullif(job_key, ''), nullif(job, ''))), {", ".join(_summed(name) for name in COUNTERS)}
FROM lustreslice WHERE time >= {span[0]!r} AND time < {span[1]!r}
GROUP BY cluster, floor(time / {HOUR!r}), target, owner, account"""


def densities(span: Span) -> str:
    """How many users and jobs had a rate of each decade, step by step, summed over the hour."""
    return " UNION ALL ".join(_density(span, members, who) for members, who in MEMBERS.items())


MEMBERS = {"user": "owner", "job": "coalesce(nullif(job_key, ''), nullif(job, ''), owner || '/' || host)"}


def _density(span: Span, members: str, who: str) -> str:
    # All operations in one pass: one at a time, most of the time goes into looking for the rows.
    sums = ", ".join(f"CAST(sum({name}) AS DOUBLE PRECISION) AS {name}" for name in OPERATIONS)
    return f"""SELECT cluster, '', '', floor(time / {HOUR!r}) * {HOUR!r}, target, operation, '{members}',
  {decade("amount")}, count(*)
FROM (SELECT cluster, target, time, {sums} FROM lustreslice WHERE time >= {span[0]!r} AND time < {span[1]!r}
  GROUP BY cluster, target, time, {who}) AS step
CROSS JOIN LATERAL (VALUES {", ".join(f"('{name}', {name})" for name in OPERATIONS)}) AS asked (operation, amount)
WHERE amount > 0 GROUP BY cluster, floor(time / {HOUR!r}), target, operation, {decade("amount")}"""


def decade(amount: str) -> str:
    """The power of ten of a rate, of what was counted in a step."""
    return f"CAST(floor(log10({amount} / {STEP!r})) AS BIGINT)"


def _steps(span: Span, begin: str, end: str) -> str:
    """The numbers of the steps, within the span, that an interval reaches into."""
    first = f"floor({begin} / {STEP!r})"
    last = f"greatest(ceil({end} / {STEP!r}) - 1, {first})"
    return f"""generate_series(CAST(greatest({first}, {span[0] / STEP!r}) AS BIGINT),
      CAST(least({last}, {span[1] / STEP - 1!r}) AS BIGINT))"""


def _part(name: str) -> str:
    """A counter's part in a step. Of whole numbers, what is not counted here is counted in the next one."""
    if whole(name):
        return f"CAST(floor({name} * upto) AS BIGINT) - CAST(floor({name} * early) AS BIGINT)"
    return f"{name} * (upto - early)"


def _summed(name: str) -> str:
    if not whole(name):
        return f"sum({name})"
    # Counters that cannot be must not keep everything from being made.
    return f"CAST(CASE WHEN sum({name}) > {MOST} THEN {MOST} ELSE sum({name}) END AS BIGINT)"
