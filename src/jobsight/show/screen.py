"""Answers about a job as a terminal shows them."""

from typing import Any

from jobsight.formats.number import cores, digits, duration, ratio, size, volume
from jobsight.show.terminal import safe, table

# Rows of a kind on one screen.
MOST = 8


def told(answers: dict[str, Any]) -> str:
    """Phases, nodes, cards and what to ask for next time, as far as there is something to tell."""
    parts = [_phases(answers["phases"]), _nodes(answers["balance"]), _cards(answers)]
    if answers["traffic"]:
        parts.append(_traffic(answers["traffic"]))
    binds = answers["binding"]
    if binds["resource"] != "unknown":
        parts.append(safe(f"{binds['sentence']} (confidence: {binds['confidence']})"))
    if answers["script"]:
        options = " ".join(line["option"] for line in answers["request"]["lines"])
        parts.append(f"next time  {options}   (--rightsize says why)")
    return "\n\n".join(part for part in parts if part)


def _phases(phases: list[dict[str, Any]]) -> str:
    if len(phases) < 2:
        return ""
    rows = [
        [phase["kind"], duration(phase["end"] - phase["begin"]), cores(phase["cores"]), _rate(phase["read"]),
         _rate(phase["written"])]
        for phase in phases[:MOST]
    ]  # fmt: skip
    names = ["phase", "for", "cores", "read", "written"]
    return table(names, rows, frozenset(names[1:])) + _more(len(phases) - MOST)


def _rate(value: float | None) -> str:
    return "—" if value is None else f"{volume(value)}/s"


def _nodes(balance: dict[str, Any]) -> str:
    """The idlest first."""
    if balance["imbalance"] is None:
        return ""
    rows = [
        [node["node"], f"{cores(node['cores'])} of {node['cpus'] or '—'}", ratio(node["part"]),
         f"{size(node['memory_peak'])} of {size(node['memory_limit'])}", volume(node["written"])]
        for node in balance["nodes"][:MOST]
    ]  # fmt: skip
    names = ["node", "cores", "work", "memory, peak", "written"]
    shown = table(names, rows, frozenset(names[1:])) + _more(len(balance["nodes"]) - MOST)
    return f"{shown}\nimbalance {ratio(balance['imbalance'])}: so much of the cores waited for the busiest node"


def _cards(answers: dict[str, Any]) -> str:
    cards, imbalance = answers["cards"], answers["cards_imbalance"]
    rows = [
        [card["node"], card["uuid"][:12], ratio(card["busy"]),
         f"{size(card['memory_peak'])} of {size(card['memory_total'])}",
         "—" if card["power"] is None else f"{digits(card['power'])} W"]
        for card in cards[:MOST]
    ]  # fmt: skip
    names = ["node", "GPU", "busy", "memory, peak", "power"]
    if not rows:
        return ""
    said = "" if imbalance is None else f"\nimbalance {ratio(imbalance)}: so much of the GPUs waited for the busiest"
    return table(names, rows, frozenset(names[2:])) + _more(len(cards) - MOST) + said


def _traffic(found: dict[str, Any]) -> str:
    """The kernel does not count it by job."""
    said = f"network  {volume(found['received'])} received, {volume(found['sent'])} sent"
    if found["fabric_received"] is not None:
        said += f"; fabric {volume(found['fabric_received'])} and {volume(found['fabric_sent'])}"
    return said if found["alone"] else f"{said}, by all that ran on its nodes"


def _more(count: int) -> str:
    return f"\n… and {count} more" if count > 0 else ""


def request(answers: dict[str, Any]) -> str:
    """What to ask for next time, to be pasted, and why."""
    asked = answers["request"]
    if asked["refused"]:
        return f"Nothing is suggested. {asked['refused']}"
    width = max(len(line["option"]) for line in asked["lines"])
    lines = [f"#SBATCH {line['option']:<{width}}  # {line['reason']}" for line in asked["lines"]]
    if not asked["sure"]:
        lines.insert(0, "# The run was cut short: this is a guess.")
    return "\n".join([*lines, "", *asked["notes"], answers["cost"]]).rstrip()


def scale(found: dict[str, Any]) -> str:
    """Will it scale."""
    lines = [found["once"]["sentence"]]
    if found["once"]["serial"] is not None:
        low, high = found["once"]["serial_low"], found["once"]["serial_high"]
        lines.append(
            f"Serial part seen in this run: {ratio(found['once']['serial'])} ({ratio(low)} to {ratio(high)}); "
            "cores that wait in a loop look busy, so it may be more."
        )
    law = found["law"]
    if law is None:
        return "\n".join([*lines, "", safe(f"No speed-up law. {found['refused']}")])
    return "\n".join([*lines, "", _runs(found), "", found["sentence"], *_law(law)])


def _runs(found: dict[str, Any]) -> str:
    one = found["law"]["one"]["value"]
    rows = [
        [str(run["cores"]), duration(run["seconds"]), f"{digits(one / run['seconds'])} ×",
         ratio(one / run["seconds"] / run["cores"]), run["id"]]
        for run in found["runs"]
    ]  # fmt: skip
    return table(["cores", "time", "speed-up", "efficiency", "job"], [[safe(cell) for cell in row] for row in rows],
                 frozenset({"cores", "time", "speed-up", "efficiency"}))  # fmt: skip


def _law(law: dict[str, Any]) -> list[str]:
    name = "Amdahl's law" if law["kind"] == "amdahl" else "the universal scalability law"
    most = f"{_span(law['knee'])} is the knee"
    fastest = f", {_span(law['fastest'])} the fastest" if law["fastest"] else ""
    value, low, high = (law["talk"][end] for end in ("value", "low", "high"))
    return [
        f"By {name}, {ratio(law['noise'])} of a run's time unexplained: {most}{fastest}.",
        f"Each pair of cores costs {value:.2g} ({low:.2g} to {high:.2g}) of the work by talking to each other.",
    ]


def _span(estimate: dict[str, float]) -> str:
    value, low, high = (int(estimate[name]) for name in ("value", "low", "high"))
    return f"{value} cores" if low == high else f"{value} cores ({low} to {high})"
