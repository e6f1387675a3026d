"""Run collectors once and print what they see.

With no collector named, all of them run. `--format jsonl` prints messages as they would be sent, `table` and
`tsv` print rows.
"""

import sys
from typing import Any

from jobsight import catalogue
from jobsight.agent.runner import run as run_collector
from jobsight.agent.service import origin
from jobsight.cli.arguments import WrongUseError, add_root, add_settings, parser, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.host import Host
from jobsight.schema.message import Message
from jobsight.schema.wire import encode


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("sample", __doc__)
    accept.add_argument("collectors", nargs="*", metavar="COLLECTOR", help="which; see `jobsight doctor`")
    accept.add_argument(
        "--format", choices=("jsonl", "table", "tsv"), help="default: table on a terminal, else jsonl"
    )
    add_settings(accept)
    add_root(accept)
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    plans = {plan.name: plan for plan in settings.collect}
    for name in given.collectors:
        if name not in plans:
            raise WrongUseError(f"no collector {name!r}; there are {', '.join(plans)}")
    host = Host(given.root)
    form = given.format or ("table" if sys.stdout.isatty() else "jsonl")
    failed = False
    for name in given.collectors or [plan.name for plan in settings.collect if plan.enabled]:
        message = run_collector(
            catalogue.collector(name), plans[name].options, host, origin(settings, host), SystemClock()
        )
        failed = failed or message.status == "failed"
        _print(message, form)
    return 1 if failed else 0


def _print(message: Message, form: str) -> None:
    if form == "jsonl":
        sys.stdout.buffer.write(encode(message))
        return
    names = list(message.rows)
    rows = [[_cell(value) for value in row] for row in zip(*message.rows.values(), strict=True)]
    if form == "tsv":
        for row in rows:
            print(message.collector, *row, sep="\t")
        return
    note = f" ({message.error})" if message.error else ""
    print(f"{message.collector}: {message.status}, {len(rows)} rows in {message.seconds:.3f} s{note}")
    for column, reason in message.missing.items():
        print(f"  {column}: {reason} for some rows")
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)]
    for row in [names, *rows] if rows else []:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    """A value on one line: names may hold tabs and newlines."""
    if value is None:
        return "-"
    text = str(value)
    return text if text.isprintable() else text.encode("unicode_escape").decode()
