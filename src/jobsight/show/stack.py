"""Stacked bars over time, ready to be drawn as they are: the largest below, what is nobody's on top. Pure."""

from typing import NamedTuple

# Names with a colour of their own.
NAMED = 7
WIDTH, HEIGHT, LEFT = 1000.0, 220.0, 64.0
OTHERS = "(others)"
LAST = ("(system)", "(idle)", "system", "idle")


class Bar(NamedTuple):
    """One name's part of one step of time."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    name: str
    energy: float


class Key(NamedTuple):
    """A name, its colour and its total."""

    name: str
    kind: str
    energy: float


class Stack(NamedTuple):
    """A chart."""

    bars: list[Bar]
    names: list[Key]
    highest: float
    begin: float
    end: float
    step: float
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT


def stack(series: dict[str, dict[float, float]], since: float, until: float, step: float) -> Stack:
    """Of values by name and by the begin of their step."""
    merged = _merged(series)
    begin = since // step * step
    count = max(1, int((until - begin) // step) + 1)
    begins = [begin + place * step for place in range(count)]
    highest = max(sum(steps.get(one, 0.0) for steps in merged.values()) for one in begins) or 1.0
    wide = (WIDTH - LEFT) / count
    bars = []
    for place, one in enumerate(begins):
        low = HEIGHT
        for number, (name, steps) in enumerate(merged.items()):
            height = steps.get(one, 0.0) / highest * HEIGHT
            if height > 0:
                low -= height
                bar = Bar(
                    x=round(LEFT + place * wide, 2),
                    y=round(low, 2),
                    width=round(max(1.0, wide - 1), 2),
                    height=round(height, 2),
                    kind=_kind(name, number),
                    name=_shown(name),
                    energy=steps[one],
                )
                bars.append(bar)
    names = [
        Key(_shown(name), _kind(name, number), sum(steps.values()))
        for number, (name, steps) in enumerate(merged.items())
    ]
    return Stack(bars, names, highest, begin, begin + count * step, step)


def _merged(series: dict[str, dict[float, float]]) -> dict[str, dict[float, float]]:
    """The largest by themselves, the others together, what is nobody's last."""
    totals = {name: sum(steps.values()) for name, steps in series.items()}
    first = sorted((name for name in totals if name not in LAST), key=lambda name: -totals[name])
    found = {name: series[name] for name in first[:NAMED]}
    for name in first[NAMED:]:
        others = found.setdefault(OTHERS, {})
        for begun, value in series[name].items():
            others[begun] = others.get(begun, 0.0) + value
    return found | {name: series[name] for name in LAST if name in series}


def _shown(name: str) -> str:
    return name or "— not known"


def _kind(name: str, number: int) -> str:
    return "others" if name == OTHERS else name.strip("()") if name in LAST else f"s{number}"
