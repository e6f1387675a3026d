"""Findings as text: for a terminal, and as a mail to whoever they are about."""

from collections.abc import Iterable
from datetime import UTC, datetime
from textwrap import fill
from typing import Any

from jobsight.formats.number import cores
from jobsight.show.grouping import KINDS, groups, wasted
from jobsight.show.terminal import safe, table

UNITS = {"core_hours": "core-hours", "gpu_hours": "GPU-hours", "gib_hours": "GiB-hours"}
SIGNS = {"careful": "△", "warning": "⚠", "critical": "✕"}
WIDTH = 76
WHENS = ("after", "before")
# Of one kind, so many are told one by one.
EACH = 5


def listed(found: list[dict[str, Any]]) -> str:
    """One line each."""
    names = ["", "id", "state", "finding", "about", "user", "core-h", "GPU-h", "GiB-h", "what was seen"]
    rows = [
        [SIGNS[one["severity"]], one["id"], one["state"], one["title"], _subject(one), one["owner"] or "—",
         *(_hours(one[kind]) for kind in KINDS), one["sentence"]]
        for one in found
    ]  # fmt: skip
    return table(names, rows, frozenset({"core-h", "GPU-h", "GiB-h"}))


def noted(found: Iterable[dict[str, Any]]) -> str:
    """Under a job's verdict."""
    return "\n".join(
        safe(f"{SIGNS[one['severity']]} {one['title']}: {one['sentence']} {one['how']}") for one in found
    )


def added_up(found: Iterable[dict[str, Any]], by: str) -> str:
    """One line for each user, account, node, job or kind of finding."""
    names = ["finding" if by == "code" else by, "findings", "users", "core-h", "GPU-h", "GiB-h", "what"]
    rows = [
        [group.name, str(group.findings), str(group.users), *(_hours(getattr(group, kind)) for kind in KINDS),
         "" if by == "code" else ", ".join(code.replace("_", " ") for code in group.codes[:4])]
        for group in groups(found, by)
    ]  # fmt: skip
    return table(names, rows, frozenset(names[1:6]))


def tested(found: dict[str, Any], tried: list[str]) -> str:
    """What changed thresholds would tell."""
    counts = found["counts"]
    then, now = (f"{counts[f'findings_{when}']} findings about {counts[f'users_{when}']} users" for when in WHENS)
    lines = [f"With {', '.join(tried)}: {then}. As it is: {now}."]
    for word, name in (("added", "Told of then, and not now"), ("gone", "Told of now, and not then")):
        if found[word]:
            shown = [one | {"state": word} for one in found[word]]
            lines += ["", f"{name}:", listed(shown)]
    return "\n".join(lines)


def mail(user: str, found: list[dict[str, Any]], since: float, until: float) -> str:
    """To one user, about what that one can change; ready to be handed to sendmail. Empty if there is nothing to
    tell: what is acknowledged was talked about.
    """
    told = [one for one in found if one["owner"] == user and one["state"] != "acknowledged"]
    if not told:
        return ""
    span = f"{_day(since)} to {_day(until)}"
    many = f"{len(told)} finding" + ("s" if len(told) > 1 else "")
    parts = [
        f"To: {safe(user)}",
        f"Subject: {many} about your jobs, {span}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Transfer-Encoding: 8bit",
    ]
    parts += ["", fill(f"This is what was seen of your jobs from {span}.{_sum(told)}", WIDTH), ""]
    for group in groups(told, "code"):
        some = [one for one in told if one["code"] == group.name]
        parts += [f"{some[0]['title']} ({len(some)})", ""]
        for one in some[:EACH]:
            said = f"{_subject(one)}: {one['sentence']}"
            parts.append(fill(safe(said), WIDTH, initial_indent="  ", subsequent_indent="    "))
        if len(some) > EACH:
            parts.append(
                f"  … and {len(some) - EACH} more: jobsight findings --user {safe(user)} --code {group.name}"
            )
        parts += [
            "",
            fill(f"{some[0]['why']} {some[0]['how']}", WIDTH, initial_indent="  ", subsequent_indent="  "),
            "",
        ]
    parts.append("`jobsight job ID` shows what a job did, and what to ask for next time.")
    return "\n".join(parts)


def _sum(told: list[dict[str, Any]]) -> str:
    amounts = [f"{cores(value)} {UNITS[kind]}" for kind in KINDS if (value := wasted(told, kind))]
    return f" Together they held {' and '.join(amounts)} that were not used." if amounts else ""


def _subject(one: dict[str, Any]) -> str:
    return f"job {one['number']}" if one["of"] == "job" else f"{one['of']} {one['subject']}"


def _hours(value: float | None) -> str:
    return "" if value is None else cores(value)


def _day(time: float) -> str:
    return f"{datetime.fromtimestamp(max(0.0, time), UTC):%Y-%m-%d}"
