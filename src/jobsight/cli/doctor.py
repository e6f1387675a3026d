"""What can be seen on this machine, what cannot, why, and how to change it."""

import json
from typing import Any

from jobsight import catalogue
from jobsight.agent.origin import origin
from jobsight.agent.run import run as run_collector
from jobsight.cli.arguments import add_root, add_settings, parser, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.collector import Collector
from jobsight.host import Host
from jobsight.schema.message import Message, Status
from jobsight.schema.record import fields_of
from jobsight.settings import Plan, Settings

MARKS = {Status.OK: "✓", Status.ABSENT: "–", Status.FAILED: "✗", Status.LATE: "✗"}


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("doctor", __doc__)
    add_settings(accept)
    add_root(accept)
    accept.add_argument("--json", action="store_true", help="print JSON")
    given = accept.parse_args(arguments)
    settings = settings_of(given.settings)
    host = Host(given.root)
    checks = [_check(plan, host, settings) for plan in settings.collect]
    if given.json:
        print(json.dumps([_plain(*check) for check in checks], indent=2))
    else:
        print(f"{host.node()}: collectors, as user {_me(host)}")
        for check in checks:
            print(_lines(*check))
        print(_sinks(settings))
    return 1 if any(message.status == Status.FAILED for _, _, message in checks) else 0


def _me(host: Host) -> str:
    import os

    return host.user(os.geteuid())


def _check(plan: Plan, host: Host, settings: Settings) -> tuple[Plan, Collector, Message]:
    found = catalogue.collector(plan.name)
    return plan, found, run_collector(found, plan.options, host, origin(settings, host), SystemClock())


def _lines(plan: Plan, found: Collector, message: Message) -> str:
    rows = len(next(iter(message.rows.values()), ()))
    state = {
        Status.OK: f"{rows} row{'' if rows == 1 else 's'} in {1000 * message.seconds:.1f} ms",
        Status.ABSENT: f"not on this machine: needs {' or '.join('/' + path for path in found.needs)}",
    }.get(message.status, message.error or "")
    pace = f"every {plan.every:g} s" if plan.enabled else "switched off in the settings"
    lines = [f"  {MARKS[message.status]} {plan.name:<10} {state}, {pace}"]
    lines += [f"      {text}" for text in _wants(found, message)]
    return "\n".join(lines)


def _wants(found: Collector, message: Message) -> list[str]:
    """What is missing and what would give it, each reason once."""
    grants = {field.name: field.grant for field in fields_of(found.record)}
    by_remedy: dict[tuple[str, str], list[str]] = {}
    for column, reason in message.missing.items():
        grant = grants.get(column, "") if reason == "forbidden" else ""
        by_remedy.setdefault((reason, grant), []).append(column)
    where = " for some rows" if message.rows else ""
    return [
        f"{', '.join(columns)}: {reason}{where}{'; ' + grant if grant else ''}"
        for (reason, grant), columns in by_remedy.items()
    ]


def _plain(plan: Plan, found: Collector, message: Message) -> dict[str, Any]:
    return {
        "collector": plan.name,
        "status": message.status.value,
        "error": message.error,
        "rows": len(next(iter(message.rows.values()), ())),
        "seconds": message.seconds,
        "missing": _wants(found, message),
        "enabled": plan.enabled,
        "every": plan.every,
        "options": plan.options._asdict() if plan.options is not None else {},
    }


def _sinks(settings: Settings) -> str:
    if not settings.sinks:
        return "sinks: none set, messages go to standard output"
    return "sinks: " + "; ".join(f"{name} {options._asdict()}" for name, options in settings.sinks)
