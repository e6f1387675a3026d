"""How the time of a program depends on its cores: Amdahl's law and the universal scalability law, fitted. Pure.

T(n) = one * (1 + serial (n - 1) + talk n (n - 1)) / n. Amdahl's law is the one without `talk`. Multiplied by n it is
linear in one, one * serial and one * talk, so weighted least squares find it, and Student's t says how well.
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

from msgspec import Struct

# A program that uses less than this part of its cores' power is not worth more of them.
USEFUL = 0.5
MANY = 1_000_000
# Student's t, two-sided 98 %, by degrees of freedom: serial and talk are then both right in more than 95 of 100.
T98 = (31.82, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.718, 2.681, 2.650, 2.624, 2.602)
T98_MANY = 2.326


class Timing(NamedTuple):
    """One run."""

    cores: int
    seconds: float
    error: float
    """How far off the seconds may be, by the way they were measured (standard deviation)."""


class Estimate(Struct):
    """The best guess, and from where to where the truth lies in 98 of 100 cases."""

    value: float
    low: float
    high: float


class Law(Struct):
    """A speed-up law."""

    kind: str
    """`amdahl`, or `usl` where cores also cost by talking to each other."""
    one: Estimate
    """Seconds on one core."""
    serial: Estimate
    """Part of the work that only one core can do."""
    talk: Estimate
    """What each pair of cores costs, as a part of the work."""
    useful: Estimate
    """The last core count at which half of the cores' power is still used."""
    knee: Estimate
    """Where speed-up times efficiency is highest: more cores cost more than they bring."""
    fastest: Estimate | None
    """Beyond this it gets slower; None if it never does."""
    noise: float
    """What the law leaves unexplained, as a part of a run's time (standard deviation)."""

    def seconds(self, cores: int) -> float:
        return self.one.value * cost(cores, self.serial.value, self.talk.value) / cores

    def speedup(self, cores: int) -> float:
        return cores / cost(cores, self.serial.value, self.talk.value)


def cost(cores: float, serial: float, talk: float) -> float:
    """How much more work so many cores have than one."""
    return 1 + serial * (cores - 1) + talk * cores * (cores - 1)


def fit(runs: list[Timing]) -> Law | None:
    """None if the runs do not tell the three numbers apart."""
    solved = _solved(runs)
    if solved is None:
        return None
    (one, b, c), spread, noise, free = solved
    student = T98[free - 1] if free <= len(T98) else T98_MANY
    if one <= 0:
        return None
    serial = _part(one, b, spread, 1, student)
    talk = _part(one, c, spread, 2, student)
    half = student * sqrt(spread[0][0])
    return Law(
        kind="usl" if talk.low > 0 else "amdahl",
        one=Estimate(one, max(0.0, one - half), one + half),
        serial=serial,
        talk=talk,
        useful=_ranged(useful, serial, talk),
        knee=_ranged(knee, serial, talk),
        fastest=_ranged(fastest, serial, talk) if talk.low > 0 else None,
        noise=noise,
    )


def _part(one: float, amount: float, spread: list[list[float]], place: int, student: float) -> Estimate:
    """An amount as a part of `one`, with the error of both."""
    ratio = amount / one
    variance = spread[place][place] - 2 * ratio * spread[0][place] + ratio * ratio * spread[0][0]
    half = student * sqrt(max(0.0, variance)) / one
    return Estimate(max(0.0, ratio), max(0.0, ratio - half), max(0.0, ratio + half))


def _solved(runs: list[Timing]) -> tuple[list[float], list[list[float]], float, int] | None:
    """The three coefficients, their covariance, the noise, and the degrees of freedom."""
    free = len(runs) - 3
    if free < 1:
        return None
    rows = [(1.0, run.cores - 1.0, run.cores * (run.cores - 1.0)) for run in runs]
    wanted = [run.cores * run.seconds for run in runs]
    # Times err by a part of themselves, and by the way they were measured.
    noise, guess, spread = 0.02, wanted, [[0.0]]
    for _ in range(8):
        errors = [
            sqrt((noise * value) ** 2 + (run.cores * run.error) ** 2) for value, run in zip(guess, runs, strict=True)
        ]
        weights = [1 / error**2 for error in errors]
        normal = [
            [sum(w * r[i] * r[j] for w, r in zip(weights, rows, strict=True)) for j in range(3)] for i in range(3)
        ]
        inverse = inverted(normal)
        if inverse is None:
            return None
        right = [sum(w * r[i] * y for w, r, y in zip(weights, rows, wanted, strict=True)) for i in range(3)]
        found = [sum(inverse[i][j] * right[j] for j in range(3)) for i in range(3)]
        guess = [max(1e-9, sum(a * b for a, b in zip(found, row, strict=True))) for row in rows]
        # What is left over beyond what is expected makes the noise.
        misfit = sum(w * (y - g) ** 2 for w, y, g in zip(weights, wanted, guess, strict=True)) / free
        noise = min(10.0, max(1e-4, noise * sqrt(misfit)))
        spread = [[value * misfit for value in row] for row in inverse]
    return found, spread, noise, free


def inverted(matrix: list[list[float]]) -> list[list[float]] | None:
    """By Gauss and Jordan; None if it has no inverse. Scaled first: its entries may be far apart."""
    size = len(matrix)
    scale = [1 / sqrt(matrix[i][i]) if matrix[i][i] > 0 else 0.0 for i in range(size)]
    left = [[matrix[i][j] * scale[i] * scale[j] for j in range(size)] for i in range(size)]
    right = [[float(i == j) for j in range(size)] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(left[row][i]))
        if abs(left[pivot][i]) < 1e-10:
            return None
        left[i], left[pivot] = left[pivot], left[i]
        right[i], right[pivot] = right[pivot], right[i]
        factor = left[i][i]
        left[i], right[i] = [v / factor for v in left[i]], [v / factor for v in right[i]]
        for row in range(size):
            if row != i and (factor := left[row][i]):
                left[row] = [v - factor * u for v, u in zip(left[row], left[i], strict=True)]
                right[row] = [v - factor * u for v, u in zip(right[row], right[i], strict=True)]
    return [[right[i][j] * scale[i] * scale[j] for j in range(size)] for i in range(size)]


def _ranged(figure: Callable[[float, float], int], serial: Estimate, talk: Estimate) -> Estimate:
    """More of either is worse: the lowest figure is that of the highest numbers."""
    return Estimate(figure(serial.value, talk.value), figure(serial.high, talk.high), figure(serial.low, talk.low))


def useful(serial: float, talk: float) -> int:
    """The last core count at which cores are worth it."""
    return _root(talk, serial - talk, 1 / USEFUL - 1 + serial)


def knee(serial: float, talk: float) -> int:
    return _root(3 * talk, serial - talk, 1 - serial)


def fastest(serial: float, talk: float) -> int:
    return _root(talk, 0.0, 1 - serial)


def _root(square: float, linear: float, constant: float) -> int:
    """The largest whole n with square n² + linear n <= constant, from 1 to many."""
    if square <= 0:
        found = constant / linear if linear > 0 else MANY
    else:
        found = (sqrt(linear * linear + 4 * square * max(0.0, constant)) - linear) / (2 * square)
    return int(min(MANY, max(1.0, found + 1e-9)))
