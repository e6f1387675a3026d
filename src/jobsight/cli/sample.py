"""Run collectors once and print what they see.

With no collector named, all of them run. `--format jsonl` prints messages as they would be sent, `table` and
`tsv` print rows. `--format sonar` prints the documents Sonar would, and runs the collectors they are made from.
"""

import sys
from collections.abc import Callable
from typing import Any

from jobsight import catalogue
from jobsight.agent.origin import origin
from jobsight.agent.run import run as run_collector
from jobsight.cli.arguments import WrongUseError, add_root, add_settings, parser, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.host import Host
from jobsight.schema.message import Message
from jobsight.schema.wire import encode
from jobsight.settings import Settings


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("sample", __doc__)
    accept.add_argument("collectors", nargs="*", metavar="COLLECTOR", help="which; see `jobsight doctor`")
    accept.add_argument(
        "--format", choices=("jsonl", "table", "tsv", "sonar"), help="default: table on a terminal, else jsonl"
    )
    add_settings(accept)
    add_root(accept)
    given = accept.parse_args(arguments)
    known = catalogue.collector_names()
    for name in given.collectors:
        if name not in known:
            raise WrongUseError(f"no collector {name!r}; there are {', '.join(known)}")
    settings = settings_of(given.settings, given.collectors)
    plans = {plan.name: plan for plan in settings.collect}
    if given.collectors and given.format == "sonar":
        raise WrongUseError("--format sonar chooses its collectors itself: name none")
    form = given.format or ("table" if sys.stdout.isatty() else "jsonl")
    show = _sonar() if form == "sonar" else lambda message: _print(message, form)
    host = Host(given.root)
    failed = False
    for name in given.collectors or _enabled(settings, form):
        options = plans[name].options
        if given.collectors and getattr(options, "here", True) is None:
            options = options._replace(here=True)  # who names it means this machine
        message = run_collector(catalogue.collector(name), options, host, origin(settings, host), SystemClock())
        failed = failed or message.status == "failed"
        show(message)
    return 1 if failed else 0


def _enabled(settings: Settings, form: str) -> list[str]:
    names = [plan.name for plan in settings.collect if plan.enabled]
    if form != "sonar":
        return names
    from jobsight.compat import sonar

    return [name for name in names if name in sonar.COLLECTORS]


def _sonar() -> Callable[[Message], None]:
    from jobsight.compat import sonar

    translator = sonar.Translator()

    def show(message: Message) -> None:
        for document in translator.documents(message):
            sys.stdout.buffer.write(sonar.encode(document))

    return show


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
