"""Energy, carbon and money: of a job, or by user, account, program, partition, node.

Energy is what work added and its part of what nodes take anyway, by the CPUs held; `own work` is without that part.
Carbon and cost are of the former, with the building's part. The grade says how it was measured: A a meter of the
node, B counters of processors and cards, C averages of sensors, D a model.
"""

import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

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
from jobsight.formats.number import ratio

if TYPE_CHECKING:
    from jobsight.settings import Settings

KINDS = ("user", "account", "program", "partition", "node", "part", "job")


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("energy", __doc__)
    add_settings(accept)
    add_formats(accept)
    accept.add_argument("--job", metavar="ID", help="of one job")
    accept.add_argument("--by", default="user", choices=KINDS, help="whose (user)")
    accept.add_argument("--since", default="7d", help="hours after: 7d, 2026-11-15, … (7d)")
    accept.add_argument("--until", default="", help="hours before")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    for name in ("since", "until"):
        try:
            when.instant(getattr(given, name) or "now", time.time())
        except ValueError as error:
            raise WrongUseError(f"--{name}: {error}") from None
    print(_told(settings_of(given.settings), given))
    return 0


def _told(settings: "Settings", given: Namespace) -> str:
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    try:
        reader = open_reader(given.store or settings.store.place, settings.energy)
        try:
            if given.job:
                return _job(reader, given)
            return _listed(reader.energy(by=given.by, since=given.since, until=given.until), given)
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None


def _job(reader: Any, given: Namespace) -> str:
    from jobsight.analyse.consumption import sentence
    from jobsight.show.terminal import export, safe

    matches = reader.named(given.job)
    if not matches:
        raise FailedError(f"no job {given.job}; `jobsight jobs --text {given.job}` searches")
    job = matches[0]
    took = reader.job(job["key"])["energy"]
    if given.format != "table":
        return export([took] if took else [], given.format)
    if took is None:
        return safe(f"{job['id']}: nothing measured what it took.")
    shown = safe(", ".join(took["factors"]))
    return safe(f"{job['id']} {job['command']}: {sentence(took)}.") + f"\nemission factors: {shown}"


def _listed(found: dict[str, Any], given: Namespace) -> str:
    from jobsight.analyse.consumption import grams, quality, watthours
    from jobsight.show.terminal import export, table

    rows, late = found["rows"], found.get("waiting", 0)
    said = f"{late} hour{'' if late == 1 else 's'} of it still to be reckoned" if late else ""
    if given.format != "table":
        if said:
            print(f"jobsight: {said}", file=sys.stderr)
        return export(rows, given.format)
    if not rows:
        return "No energy is known of this time. Try --since 30d, or see docs/operate/energy.md for what measures it."
    names = [given.by, "jobs", "energy", "own work", "cards", "CO₂e", "cost", "measured", "how good"]
    lines = [
        [
            row["name"] or "— not known", str(row["jobs"] or "—"),
            *(["— nothing measured it", "", "", "", "", "", ""] if not row["grade"] else [
                watthours(row["energy_full"]), watthours(row["energy"]) if row["idle_known"] else "—",
                watthours(row["energy_cards"]) if row["energy_cards"] else "—", grams(row["emissions"]),
                "—" if row["cost"] is None else f"{row['cost']:.2f} {row['currency']}", ratio(row["coverage"]),
                quality(row),
            ]),
        ]
        for row in rows
    ]  # fmt: skip
    return table(names, lines, frozenset(names[1:8])) + _law(found["law"]) + (said and f"\n{said}")


def _law(law: dict[str, Any] | None) -> str:
    """That the parts are the whole."""
    if law is None:
        return ""
    from jobsight.analyse.consumption import watthours

    parts = " + ".join(f"{name} {watthours(law[name])}" for name in ("jobs", "system", "idle"))
    rest = "" if law["residual"] <= 1e-9 else f", but for {ratio(law['residual'])}"
    return f"\n\n{parts} = {watthours(law['measured'])} measured{rest}"
