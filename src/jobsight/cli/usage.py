"""How full the site is and was: what there was, what was given to jobs and used, by whom and when.

With no filter: the last 30 days by user. Parts, idle and down add up to what there was. Hours and days are those of
the site's time zone (setting `timezone`).
"""

from typing import Any

from jobsight.cli.arguments import add_formats, add_settings, parser, sentences, settings_of
from jobsight.formats.number import MISSING, digits, duration, meter, ratio

DIMENSIONS = (
    "user", "account", "partition", "program", "node", "hour", "day", "month", "weekday", "hour-of-day",
)  # fmt: skip
QUANTILES = ("median", "ninth", "longest")
TIMED = ("node", "hour", "day", "month", "weekday", "hour-of-day")


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("usage", __doc__)
    add_settings(accept)
    add_formats(accept)
    accept.add_argument("--by", default="user", choices=DIMENSIONS, help="one line for each (user)")
    add_span(accept)
    for name, text in (("user", "whose"), ("account", "of which account"), ("partition", "in which partition")):
        accept.add_argument(f"--{name}", default="", help=text)
    accept.add_argument("--program", default="", help="by which program")
    accept.add_argument("--waits", action="store_true", help="how long jobs waited, by partition and size")
    accept.add_argument("--cluster", default="", help="of which cluster, where a store has several")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    from jobsight.analyse.sites import Asked, site_of
    from jobsight.cli.jobs import read

    settings = settings_of(given.settings)
    site = site_of(settings)
    asked = Asked(
        given.by,
        given.since,
        given.until,
        given.period,
        given.user,
        given.account,
        given.partition,
        given.program,
        given.cluster,
    )
    found = read(given.store or settings.store.place, lambda reader: reader.usage(site, asked))
    print(_waits(found["waits"], given.format) if given.waits else _shown(found, given.format))
    return 0


def add_span(accept: Any) -> None:
    """Of which time: for this verb and `programs`."""
    accept.add_argument("--since", default="", help="7d, 2026-11-15, … (30d)")
    accept.add_argument("--until", default="", help="until when (now)")
    accept.add_argument(
        "--period", default="", help="month, last month, year, 30d, 2026-10, or a name of the settings' `periods`"
    )


def _shown(found: dict[str, Any], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(found["rows"], form)
    whole = found["whole"]
    if not whole["total"]:
        return "No hour of this time has been counted: hours are, some minutes after they are over. Try --since 1y."
    timed = found["by"] in TIMED
    names = [
        found["by"],
        "used",
        "of all" if not timed else "of it",
        "",
        "given",
        "of all " if not timed else "of it ",
    ]
    names += ["there was", "idle", "down", "waited for"] if timed else ["cards used", "cards held"]
    rows = [_row(row, whole["total"], timed=timed) for row in found["rows"] if _matters(row)]
    shown = table(names, rows, frozenset(names) - {found["by"], ""})
    return f"{shown}\n\n{_said(found)}"


def _matters(row: dict[str, Any]) -> bool:
    return bool(row["kind"] != "beyond" or row["used"] < -1 or row["allocated"] < -1)


def _row(row: dict[str, Any], whole: float, *, timed: bool) -> list[str]:
    of = row["total"] if timed else whole
    cells = [
        row["name"] or "(not known)", cpu_hours(row["used"]), _part(row["used"], of), meter(row["used"], of, 8),
        cpu_hours(row["allocated"]), _part(row["allocated"], of),
    ]  # fmt: skip
    more = ("total", "idle", "down", "demand") if timed else ("gpu_used", "gpu_allocated")
    return [*cells, *(cpu_hours(row[name]) for name in more)]


def _said(found: dict[str, Any]) -> str:
    whole = found["whole"]
    up = whole["total"] - whole["down"]
    text = f"Of {cpu_hours(up)} of CPU time to be had {_part(whole['allocated'], up)} was given to jobs and "
    text += f"{_part(whole['used'], up)} was used."
    if whole["own_used"] is not None:
        text += f" Chosen: {_part(whole['own_used'], up)} used."
    return f"{text} Hours and days of {found['zone']}."


def _waits(rows: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(rows, form)
    if not rows:
        return "No job is known to have waited: a scheduler's word on jobs is needed (see docs/operate/scheduler.md)."
    names = ["partition", "size", "jobs", "half waited less than", "nine of ten less than", "longest"]
    lines = [
        [row["partition"], row["size"], str(row["jobs"]), *(duration(row[name]) for name in QUANTILES)]
        for row in rows
    ]
    return table(names, lines, frozenset(names[2:]))


def cpu_hours(seconds: float | None) -> str:
    return MISSING if seconds is None else f"{digits(seconds / 3600)} h"


def _part(value: float, whole: float | None) -> str:
    return ratio(value / whole) if whole else MISSING
