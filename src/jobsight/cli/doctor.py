"""What can be seen on this machine, what cannot, why, and how to change it."""

import json
from typing import Any

from jobsight import catalogue
from jobsight.agent.origin import origin
from jobsight.agent.run import run as run_collector
from jobsight.cli.arguments import add_root, add_settings, parser, sentences, settings_of
from jobsight.clock import SystemClock
from jobsight.collector import Collector
from jobsight.formats.number import duration, size
from jobsight.host import Host
from jobsight.schema.message import Message, Status
from jobsight.schema.record import fields_of
from jobsight.settings import Plan, Settings
from jobsight.ship.backlog import backlogs

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
        print("\n".join(_spools(settings.spool.path, SystemClock().wall())))
    return 1 if any(message.status == Status.FAILED for _, _, message in checks) else 0


def _me(host: Host) -> str:
    import os

    return host.user(os.geteuid())


def _check(plan: Plan, host: Host, settings: Settings) -> tuple[Plan, Collector, Message]:
    found = catalogue.collector(plan.name)
    return plan, found, run_collector(found, plan.options, host, origin(settings, host), SystemClock())


def _needs(plan: Plan, found: Collector) -> str:
    needs = [f"/{path}" for path in found.needs] + list(found.runs)
    # One that asks a scheduler does so on one machine of a cluster.
    here = " and `here: true`, or the scheduler's own machine" if hasattr(plan.options, "here") else ""
    return " or ".join(needs) + here


def _lines(plan: Plan, found: Collector, message: Message) -> str:
    rows = len(next(iter(message.rows.values()), ()))
    state = {
        Status.OK: f"{rows} row{'' if rows == 1 else 's'} in {1000 * message.seconds:.1f} ms",
        Status.ABSENT: f"not on this machine: needs {_needs(plan, found)}",
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
    return "sinks: " + "; ".join(f"{name} {_shown(options)}" for name, options in settings.sinks)


def _shown(options: Any) -> dict[str, Any]:
    """There may be a password in a proxy's address."""
    plain: dict[str, Any] = options._asdict()
    if plain.get("proxy"):
        plain["proxy"] = plain["proxy"].rpartition("@")[2]
    return plain


def _spools(path: str, now: float) -> list[str]:
    """What waits to be sent, and what never was: as the files say, whoever has them open."""
    try:
        found = backlogs(path)
    except OSError as error:
        return [f"spool: {path} cannot be read: {error.strerror}"]
    if not found:
        return [f"spool: nothing waits in {path}"]
    lines = []
    for name, state in found.items():
        old = "" if state.since is None else f", the oldest since {duration(max(0.0, now - state.since))} at most"
        lost = f"; {state.dropped} dropped in its life, {state.torn} of them torn" if state.dropped else ""
        lines.append(f"spool {name}: messages waiting {state.messages}, {size(state.size)}{old}{lost}")
    return lines
