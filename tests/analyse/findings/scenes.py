"""Scenes written by hand, as JSON has them: machines, jobs, hours and who waits."""

from typing import Any

from msgspec import convert, structs

from jobsight.analyse.cards import Card
from jobsight.analyse.case import Around, Case, Hour, Machine, Pairs, Scene
from jobsight.analyse.job import Part
from jobsight.analyse.scene import surroundings
from jobsight.analyse.summary import Summary, summary
from tests.analyse.figures import document, part

NOW = 1_000_000.0
HOUR = 3600.0


def figures(given: dict[str, Any]) -> tuple[Summary, tuple[Part, ...]]:
    """A job of four hours on eight CPUs and 64 GiB, four fifths of the cores and half of the memory in use; what is
    given is changed.
    """
    hours = given.get("hours", 4.0)
    seconds = hours * HOUR
    usual = {
        "time": NOW, "seconds": seconds, "covered": seconds, "cpu_time": 6.4 * seconds, "began": NOW - seconds,
        "memory_peak": 32 * 2**30, "memory_limit": 64 * 2**30,
    }  # fmt: skip
    parts = [part(**(usual | one)) for one in given.get("parts", [{}])]
    named = {name: given[name] for name in ("owner", "account", "partition", "scheduler", "name") if name in given}
    identity = given.get("id", "7")
    told = document(
        *parts, key=f"fox.slurm.{identity}.0", id=identity, started=NOW - seconds, seen=NOW,
        **({"partition": "normal", "account": "physics"} | named),
    )  # fmt: skip
    made = summary(told | {"batch": _batch(given, seconds)}, NOW)
    return structs.replace(made, **given.get("figures", {})), tuple(convert(told["parts"], list[Part]))


def _batch(given: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    if given.get("scheduler", "slurm") != "slurm":
        return None
    parts = given.get("parts", [{}])
    counts = [one for one in parts if one.get("source") != "gpu"]
    usual = {
        "told": NOW, "job": given.get("id", "7"), "state": "COMPLETED", "submit": NOW - seconds - 60,
        "start": NOW - seconds, "ended": NOW, "elapsed": seconds, "time_limit": 2 * seconds,
        "node_count": len({one.get("node", "n1") for one in parts}), "nodes": "n1",
        "cpus": sum(one.get("cpus", 8) for one in counts), "partition": given.get("partition", "normal"),
        "memory": sum(one.get("memory_limit", 64 * 2**30) for one in counts),
    }  # fmt: skip
    made: dict[str, Any] = usual | {"owner": given.get("owner", "alice")} | given.get("batch", {})
    return made


def scene(given: dict[str, Any]) -> Scene:
    """A cluster `fox` with machines of 64 CPUs and 256 GiB, given out by a scheduler, if nothing else is said."""
    known = {
        ("fox", name): Machine(
            **{"cpus": 64, "memory": 256 * 2**30, "partitions": ["normal"], "scheduled": True, **one}
        )
        for name, one in given.get("machines", {"n1": {}}).items()
    }
    made = [figures(one) for one in given.get("jobs", [])]
    pending = [figures(one)[0] for one in given.get("waiting", [])]
    hours = {
        ("fox", node): [Hour(NOW + begin * HOUR, load, pressure) for begin, load, pressure in some]
        for node, some in given.get("hours", {}).items()
    }
    around = surroundings([*(told for told, _ in made), *pending], known, hours, NOW)
    cases = []
    for one, (told, parts) in zip(given.get("jobs", []), made, strict=True):
        node = ("fox", (told.nodes or [""])[0])
        place = node if node in around and told.batch is None else ("fox", told.partition)
        more = {name: NOW + one[name] * HOUR for name in ("busy_until", "sliced_until") if name in one}
        cases.append(
            Case(
                told,
                parts,
                tuple(known["fox", name] for name in told.nodes if ("fox", name) in known),
                pairs=Pairs(*one["pairs"]) if "pairs" in one else None,
                cards=tuple(convert(one.get("cards", []), list[Card])),
                around=around.get(place, Around()),
                **more,
            )
        )
    return Scene(NOW - 86400, NOW, tuple(cases), known, around)
