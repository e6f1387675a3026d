"""Who loads the file system: Lustre's targets, who asks what of them, and how much.

With no argument: every target with its rates over the last day, and whether the last minutes are above the day's
mean. With --target: who asked the most for an operation there. Others' names are for administrators.
"""

import time
from typing import Any

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)
from jobsight.formats import when
from jobsight.formats.number import digits, meter, ratio, scaled, spark, volume

WIDTH = 60
SIGNALS = {"rising": "▲ rising", "falling": "▼ falling", "steady": "= steady", "": "—"}
# What is asked of a target where nothing was said.
FIRST = {True: "open", False: "write_bytes"}


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("io", __doc__)
    accept.add_argument("--target", default="", help="of this target: scratch-OST0001, …")
    accept.add_argument("--op", dest="operation", default="", help="read_bytes, write_bytes, open, getattr, …")
    accept.add_argument("--by", default="user", choices=("user", "job", "account", "node", "program"), help="list by")
    accept.add_argument("--density", action="store_true", help="how many users asked how much, over time")
    accept.add_argument("--since", default="24h", help="from when: 7d, 2026-11-15, … (24h)")
    accept.add_argument("--until", default="", help="until when (now)")
    accept.add_argument("--limit", dest="most", type=int, default=20, help="at most so many (20)")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    add_settings(accept)
    add_formats(accept)
    given = accept.parse_args(arguments)
    for name in ("since", "until"):
        try:
            when.instant(getattr(given, name) or "now", time.time())
        except ValueError as error:
            raise WrongUseError(f"--{name}: {error}") from None
    if given.most < 1:
        raise WrongUseError("--limit: at least one")
    if not given.target and (given.operation or given.density):
        raise WrongUseError("say which target: --target scratch-OST0001; `jobsight io` lists them")
    place = given.store or settings_of(given.settings).store.place
    asked = {"since": given.since, "until": given.until}
    if not given.target:
        print(_targets(_read(place, "targets", **asked), given.format))
        return 0
    operation = given.operation or FIRST["-MDT" in given.target]
    asked |= {"target": given.target, "operation": operation}
    if given.density:
        print(_density(_read(place, "panels", **asked), given.format))
    else:
        found = _read(place, "top", **asked, by=given.by, most=given.most)
        print(_top(found, given.by, operation, given.format))
    return 0


def _read(path: str, what: str, **asked: Any) -> Any:
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    try:
        reader = open_reader(path)
        try:
            return reader.io(what, **asked)
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None


def _targets(rows: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(rows, form)
    if not rows:
        return "No Lustre server was heard of. Try --since 7d, or run the agent on the file system's servers."
    names = ["target", "kind", "read", "written", "metadata", "now against the day", "entries", "observed"]
    lines = [
        [
            row["target"], row["kind"], _rate(row["read_rate"], bytes_=True), _rate(row["written_rate"], bytes_=True),
            _rate(row["metadata_rate"], bytes_=False), SIGNALS[row["signal"]], str(row["entries"]),
            ratio(row["observed"]),
        ]
        for row in rows
    ]  # fmt: skip
    return table(names, lines, frozenset({"read", "written", "metadata", "entries", "observed"}))


def _top(rows: list[dict[str, Any]], by: str, operation: str, form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(rows, form)
    if not rows:
        return f"Nobody asked for {operation} there in this time, or nobody you may see."
    bytes_ = operation.endswith("_bytes")
    names = [by, *(["user"] if by != "user" else []), "in all", "mean", "share", "", "latency", "repaired"]
    lines = [
        [
            row[by] or "— not known", *([row["owner"]] if by != "user" else []),
            volume(row["amount"]) if bytes_ else str(row["amount"]), _rate(row["rate"], bytes_=bytes_),
            ratio(row["share"]), meter(row["share"], 1.0, 10), _brief(row["latency"]),
            ratio(row["repaired"]) if row["repaired"] else "",
        ]
        for row in rows
    ]  # fmt: skip
    return table(names, lines, frozenset({"in all", "mean", "share", "latency", "repaired"}))


def _density(panels: dict[str, Any], form: str) -> str:
    from jobsight.show.terminal import export

    density = panels["density"]
    if density is None:
        raise FailedError("how many users ask how much is for administrators")
    rows = [
        {"time": time, "decade": decade, "users": number}
        for time, decade, number in zip(density["time"], density["decade"], density["number"], strict=True)
    ]
    if form != "table":
        return export(rows, form)
    if not rows:
        return f"Nobody asked for {panels['operation']} there in this time."
    bytes_ = panels["unit"] == "bytes"
    span = panels["until"] - panels["since"]
    lines = [f"{panels['operation']} of {panels['target']}: users by rate, over time"]
    for decade in sorted({row["decade"] for row in rows}, reverse=True):
        cells = [0.0] * WIDTH
        for row in rows:
            if row["decade"] == decade:
                place = min(WIDTH - 1, int((row["time"] - panels["since"]) / span * WIDTH))
                cells[place] = max(cells[place], row["users"])
        label = f"from {_rate(10.0**decade, bytes_=bytes_)}"
        lines.append(f"{label:>16}  {spark(cells)}  at most {digits(max(cells))}")
    return "\n".join(lines)


def _rate(value: float | None, *, bytes_: bool) -> str:
    if value is None:
        return "—"
    return f"{volume(value) if bytes_ else digits(value)}/s"


def _brief(seconds: float | None) -> str:
    return "—" if seconds is None else scaled(1e6 * seconds, 1000, ("µs", "ms", "s"))
