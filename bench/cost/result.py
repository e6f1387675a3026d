"""What a bench found, and how it is shown."""

from typing import Any, NamedTuple

from bench.cost.contest import Census, Cost


class Line(NamedTuple):
    """One number with what was promised about it."""

    what: str
    value: float
    promise: float | None = None
    least: float | None = None
    unit: str = ""

    @property
    def verdict(self) -> str:
        """Of the medians and of the cheapest rounds: where they disagree, the machine was too busy to tell."""
        if self.promise is None:
            return ""
        kept = {value <= self.promise for value in (self.value, self.least) if value is not None}
        return "UNCLEAR" if len(kept) > 1 else "kept" if kept == {True} else "NOT KEPT"


class Table(NamedTuple):
    """One bench."""

    title: str
    conditions: list[str]
    costs: dict[str, Cost]
    lines: list[Line]
    census: Census
    wrong: list[str] = []  # noqa: RUF012
    """Numbers that are not what they should be: the only thing that makes a run fail."""


def ratio(costs: dict[str, Cost], name: str, rival: str, promise: float | None = None) -> list[Line]:
    """One line, or none where one of the two was not measured."""
    if name not in costs or rival not in costs:
        return []
    ours, theirs = costs[name], costs[rival]
    what = f"{name} / {rival}"
    return [Line(what, ours.median / theirs.median, promise, ours.least / theirs.least)]


def shown(table: Table) -> str:
    """For people."""
    out = [table.title, "=" * len(table.title), *table.conditions, str(table.census)]
    if not table.census.steady:
        out.append("DISTURBED: the number of processes changed; nothing below is judged. Run it again.")
    if table.costs:
        out += ["", f"{'CPU of one sample, ms':<64}{'median':>9}{'least':>9}"]
        out += [f"{name:<64}{cost.median * 1e3:>9.2f}{cost.least * 1e3:>9.2f}" for name, cost in table.costs.items()]
    if table.lines:
        ratios = any(line.least is not None for line in table.lines)
        out += ["", f"{'':<92}{'':>10}{'least' if ratios else '':>8}{'promise':>9}"]
        out += [_line(line, judged=table.census.steady) for line in table.lines]
    if table.wrong:
        out += ["", f"WRONG: {len(table.wrong)}", *(f"  {text}" for text in table.wrong[:10])]
    return "\n".join(out)


def _line(line: Line, *, judged: bool) -> str:
    value = f"{line.value:.1f} {line.unit}" if line.unit else str(line.value)
    if isinstance(line.value, float) and not line.unit:
        value = f"{line.value:.3f}"
    least = "" if line.least is None else f"{line.least:.3f}"
    promise = "" if line.promise is None else f"{line.promise:g}"
    return f"{line.what:<92}{value:>10}{least:>8}{promise:>9}  {line.verdict if judged else ''}".rstrip()


def plain(table: Table) -> dict[str, Any]:
    """For programs."""
    return {
        "title": table.title,
        "conditions": table.conditions,
        "cpu_seconds": {name: cost._asdict() for name, cost in table.costs.items()},
        "processes": str(table.census),
        "steady": table.census.steady,
        "lines": [{**line._asdict(), "verdict": line.verdict if table.census.steady else ""} for line in table.lines],
        "wrong": table.wrong,
    }
