"""Settings of energy: how it is shared out, and what a kilowatt hour causes and costs. Nodes need none of them."""

from typing import Any, NamedTuple

METHODS = ("activity", "cpu_time")
# Of emission factors, the most immediate first.
PROVIDERS = ("rte", "emaps", "owid", "constant")
# Grams and watts that nobody has, and money that nobody pays.
HEAVIEST, STRONGEST, DEAREST = 2000.0, 30_000.0, 1e6


class Model(NamedTuple):
    """What a node takes where nothing measures it (watts): doing nothing, and with all its CPUs busy."""

    idle: float
    most: float


class Energy(NamedTuple):
    """What is made of meters and counters."""

    method: str = "activity"
    """Or `cpu_time`: all that a node takes, by relative CPU time."""
    pue: float = 1.0
    """What the building takes for each joule of its machines: cooling, losses."""
    baseline: dict[str, float] = {}  # noqa: RUF012  # nobody writes to it
    """Idle power without cards, in watts, by names of nodes such as `c1-*`; learned where not set."""
    limit: dict[str, float] = {}  # noqa: RUF012
    """The most a node can take (watts), by names of nodes: a meter that says more is not believed."""
    model: dict[str, Model] = {}  # noqa: RUF012
    """For nodes that measure nothing, by their names; without it their energy is not known."""
    cards_in_meter: bool = True
    """Whether the node's meter sees its cards, too."""
    country: str = ""
    """Two letters: whose yearly carbon intensity counts where nobody tells a newer one; the world's if not set."""
    constant: float | None = None
    """Grams a kilowatt hour, in place of that."""
    provider: str = ""
    """Whose factors count, of those that `emissionfactor` brings; the most immediate if not set."""
    price: float | None = None
    """Of a kilowatt hour."""
    price_file: str | None = None
    """Prices over time: lines of a time, a tab and the price that holds from then on."""
    currency: str = "EUR"


USUAL = Energy()


def check(options: Energy) -> None:
    """ValueError for what types cannot say."""
    if options.method not in METHODS:
        raise ValueError(f"method: no {options.method!r}; there are {', '.join(METHODS)}")
    if not 1.0 <= options.pue <= 10.0:
        raise ValueError(f"pue: expected 1 to 10, got {options.pue:g}")
    for name in ("baseline", "limit"):
        for pattern, watts in getattr(options, name).items():
            if not 0 < watts <= STRONGEST:
                raise ValueError(f"{name}.{pattern}: expected watts up to {STRONGEST:g}, got {watts:g}")
    for pattern, model in options.model.items():
        if not 0 <= model.idle <= model.most <= STRONGEST:
            raise ValueError(f"model.{pattern}: expected 0 ≤ idle ≤ most ≤ {STRONGEST:g} watts")
    if options.constant is not None and not 0 <= options.constant <= HEAVIEST:
        raise ValueError(f"constant: expected grams a kilowatt hour up to {HEAVIEST:g}")
    if len(options.country) not in (0, 2) or not (options.country or "FR").isalpha():
        raise ValueError(f"country: expected two letters, got {options.country!r}")
    if options.provider and options.provider not in PROVIDERS:
        raise ValueError(f"provider: no {options.provider!r}; there are {', '.join(PROVIDERS)}")
    if options.price is not None and not -DEAREST <= options.price <= DEAREST:
        raise ValueError(f"price: expected a number up to {DEAREST:g}, got {options.price:g}")
    if options.price is not None and options.price_file:
        raise ValueError("a price is set by price or by price_file, not by both")


def named(patterns: dict[str, Any], node: str) -> Any:
    """What the first pattern that a node's name fits stands for; None if none does."""
    from fnmatch import fnmatchcase

    return next((value for pattern, value in patterns.items() if fnmatchcase(node, pattern)), None)
