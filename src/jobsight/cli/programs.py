"""Which software was used how much, by how many, with how much memory.

With no filter: the last 30 days. Commands become programs by the map of the settings (`programs.map`) and the starter
map behind it, as they are now; `--unmapped` ranks the commands that neither knows.
"""

from typing import Any

from jobsight.cli.arguments import WrongUseError, add_formats, add_settings, parser, sentences, settings_of
from jobsight.cli.usage import add_span, cpu_hours
from jobsight.formats.number import MISSING, ratio, scaled, size


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("programs", __doc__)
    add_settings(accept)
    add_formats(accept)
    add_span(accept)
    accept.add_argument("--by", default="program", choices=("program", "tag"), help="one line for each (program)")
    accept.add_argument("--tag", default="", help="only these: chemistry, chemistry/quantum, licensed, or a program")
    for name, text in (("user", "whose"), ("account", "of which account"), ("partition", "in which partition")):
        accept.add_argument(f"--{name}", default="", help=text)
    accept.add_argument("--unmapped", action="store_true", help="commands that are in no map, by use")
    accept.add_argument("--try", dest="trial", nargs="...", metavar="WORD", help="which program a command line is")
    accept.add_argument("--cluster", default="", help="of which cluster, where a store has several")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    from jobsight.analyse.programmap import MapError
    from jobsight.analyse.sites import Asked, site_of
    from jobsight.cli.jobs import read

    settings = settings_of(given.settings)
    site = site_of(settings)
    try:
        site.maps.current()
    except MapError as error:
        raise WrongUseError(str(error)) from None
    if given.trial:
        print(_tried(site, given.trial))
        return 0
    asked = Asked(
        given.by,
        given.since,
        given.until,
        given.period,
        given.user,
        given.account,
        given.partition,
        given.tag,
        given.cluster,
    )
    place = given.store or settings.store.place
    if given.unmapped:
        print(_unmapped(read(place, lambda reader: reader.unmapped(site, asked)), given.format))
        return 0
    print(_shown(read(place, lambda reader: reader.programs(site, asked)), given.format))
    return 0


def _tried(site: Any, words: list[str]) -> str:
    import os

    name = os.path.basename(words[0])[:15]
    found = site.maps.current().program(name, " ".join(words))
    return f"{name}: {found.name} ({', '.join(found.tags) or 'no tags'})" if found else f"{name}: in no map"


def _shown(found: dict[str, Any], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(found["rows"], form)
    if not found["rows"]:
        return "Nothing was counted in this time: hours are, some minutes after they are over. Try --since 1y."
    names = [
        "program",
        "CPU time",
        "of all",
        "given",
        "cards",
        "energy",
        "users",
        "jobs",
        "memory, half",
        "9 of 10",
        "most",
    ]
    rows = [
        [
            row["program"] or "(not in the map)", cpu_hours(row["used"]),
            ratio(row["used"] / found["used"]) if found["used"] else MISSING, cpu_hours(row["allocated"]),
            cpu_hours(row["gpu_used"]), _energy(row["energy"]), str(row["users"]), str(row["jobs"]),
            size(row["memory_median"]), size(row["memory_high"]), size(row["memory_peak"]), " ".join(row["tags"]),
        ]
        for row in found["rows"]
    ]  # fmt: skip
    return table([*names, "tags"], rows, frozenset(names[1:]))


def _unmapped(rows: list[dict[str, Any]], form: str) -> str:
    from jobsight.show.terminal import export, table

    if form != "table":
        return export(rows, form)
    if not rows:
        return "Every command that was seen is in a map."
    lines = [[row["command"], cpu_hours(row["used"]), cpu_hours(row["allocated"])] for row in rows]
    return table(["command", "CPU time", "given"], lines, frozenset({"CPU time", "given"}))


def _energy(joules: float | None) -> str:
    return MISSING if joules is None else scaled(joules / 3600, 1000, ("Wh", "kWh", "MWh", "GWh"))
