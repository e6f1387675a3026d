"""Cards as a vendor's library tells of them: one shape for all vendors, in base units.

What is not known is None. What cannot be is made None here, in one place for all: libraries say "not available" by
all bits set, by 255 degrees or by a power that no board takes, and one such number would be the peak of a job.
"""

from typing import Any, NamedTuple, get_args

from jobsight.collector import ParseError

# All bits set, in the widths that libraries use.
NOTHING = frozenset({2**64 - 1, 2**63 - 1, 2**32 - 1, 2**31 - 1})
HOTTEST, COLDEST = 150.0, -60.0
# Of the largest limit that the board may be given; a reading is a mean and may be a little above.
OVER = 1.1
# No board made takes as much; where a limit is not known.
STRONGEST = 5000.0
FASTEST = 20_000_000_000
LARGEST = 2**50
# No card, device file or process has a higher number.
HIGHEST = 2**30
# All ones of 64 bits are said, and are no number; what is larger is no answer.
FARTHEST = 2**65

RATIOS = (
    "utilization", "memory_utilization", "sm_active", "sm_occupancy", "tensor_active", "memory_active", "fan",
)  # fmt: skip
SIZES = ("memory_total", "memory_used")
CLOCKS = ("clock", "memory_clock", "clock_max", "memory_clock_max")
POWERS = ("power", "power_limit", "power_least", "power_most")
TEMPERATURES = ("temperature", "memory_temperature")
NUMBERS = ("ordinal", "minor", "xid")
COUNTERS = (
    "busy", "energy", "pcie_sent", "pcie_received", "ecc_corrected", "ecc_uncorrected", "power_capped", "overheated",
)  # fmt: skip


class Card(NamedTuple):
    """One card, or one instance of a card that was divided."""

    vendor: str
    uuid: str = ""
    """Empty where the card could not even say that."""
    parent: str | None = None
    """Of an instance, the card's uuid."""
    ordinal: int | None = None
    """The library's number, which is not that of the device file."""
    minor: int | None = None
    """That of the device file."""
    address: str | None = None
    model: str | None = None
    architecture: str | None = None
    driver: str | None = None
    firmware: str | None = None
    library: str | None = None
    divided: bool | None = None
    utilization: float | None = None
    busy: float | None = None
    memory_utilization: float | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    sm_active: float | None = None
    sm_occupancy: float | None = None
    tensor_active: float | None = None
    memory_active: float | None = None
    power: float | None = None
    power_limit: float | None = None
    power_least: float | None = None
    power_most: float | None = None
    energy: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    fan: float | None = None
    clock: int | None = None
    clock_max: int | None = None
    memory_clock: int | None = None
    memory_clock_max: int | None = None
    throttle: str | None = None
    power_capped: float | None = None
    overheated: float | None = None
    pcie_sent: int | None = None
    pcie_received: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    xid: int | None = None
    trouble: str | None = None
    """Which calls failed, and how."""


class Holder(NamedTuple):
    """A process that has something on a card."""

    uuid: str
    pid: int
    kind: str
    """`compute` or `graphics`."""
    memory: int | None = None
    utilization: float | None = None
    memory_utilization: float | None = None


class Reading(NamedTuple):
    """All cards of a vendor at one time."""

    cards: list[Card]
    holders: list[Holder]


def plain(reading: Reading) -> dict[str, Any]:
    """For the way through a pipe or a file; what is not known is left out."""
    rows = {"cards": reading.cards, "holders": reading.holders}
    return {
        name: [{key: value for key, value in row._asdict().items() if value is not None} for row in found]  # type: ignore[attr-defined]
        for name, found in rows.items()
    }


def reading_of(values: Any) -> Reading:
    """The way back, without what cannot be. ParseError if it is not what `plain` gives."""
    if not isinstance(values, dict) or values.keys() != {"cards", "holders"}:
        raise ParseError(f"expected cards and holders, got {values!r:.80}")
    if not all(isinstance(rows, list) for rows in values.values()):
        raise ParseError(f"expected lists of cards and holders, got {values!r:.80}")
    cards = [plausible(Card(**_checked(Card, row))) for row in values["cards"]]
    return Reading(cards, [plausible_holder(Holder(**_checked(Holder, row))) for row in values["holders"]])


def _checked(kind: type[Any], row: Any) -> dict[str, Any]:
    """Values that are what their fields are declared as."""
    fields = kind.__annotations__
    if not isinstance(row, dict) or not {"vendor"} & fields.keys() <= row.keys() <= fields.keys():
        raise ParseError(f"expected values of a {kind.__name__.lower()}, got {row!r:.80}")
    if kind is Holder and not (row.keys() >= {"uuid", "pid", "kind"} and within(row["pid"], 1, HIGHEST)):
        raise ParseError(f"expected a card, a pid and a kind, got {row!r:.80}")
    return {name: _value(name, fields[name], value) for name, value in row.items()}


def _value(name: str, declared: Any, value: Any) -> Any:
    kinds = get_args(declared) or (declared,)
    if isinstance(value, str) and str in kinds:
        return value.encode("utf-8", "backslashreplace").decode()
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in kinds and number and abs(value) < FARTHEST:
        return float(value)
    if type(value) in kinds and (not number or abs(value) < FARTHEST):
        return value
    raise ParseError(f"{name}: expected {declared}, got {value!r:.80}")


def plausible(card: Card) -> Card:
    """The card without what cannot be; which numbers that were is said as its trouble."""
    most = card.power_most if within(card.power_most, 0, STRONGEST) else None
    ranges = {
        **dict.fromkeys(RATIOS, (0.0, 1.0)),
        **dict.fromkeys(SIZES, (0, LARGEST)),
        **dict.fromkeys(CLOCKS, (0, FASTEST)),
        **dict.fromkeys(TEMPERATURES, (COLDEST, HOTTEST)),
        **dict.fromkeys(COUNTERS, (0, 2**62)),
        **dict.fromkeys(NUMBERS, (0, HIGHEST)),
        **dict.fromkeys(POWERS, (0, STRONGEST)),
        "power": (0, OVER * most if most else STRONGEST),
    }
    wrong = {
        name: getattr(card, name)
        for name, (least, largest) in ranges.items()
        if getattr(card, name) is not None and not within(getattr(card, name), least, largest)
    }
    # Above its memory is no use of memory.
    if "memory_used" not in wrong and card.memory_total is not None and (card.memory_used or 0) > card.memory_total:
        wrong["memory_used"] = card.memory_used
    # To say that a number is not available is no trouble.
    odd = [f"{name}: {value:g} cannot be" for name, value in wrong.items() if value not in NOTHING]
    trouble = "; ".join([*filter(None, [card.trouble]), *odd]) or None
    nothing: dict[str, Any] = dict.fromkeys(wrong)
    return card._replace(**nothing)._replace(trouble=trouble)


def plausible_holder(holder: Holder) -> Holder:
    """The same of a process."""
    return holder._replace(
        memory=holder.memory if within(holder.memory, 0, LARGEST) else None,
        utilization=holder.utilization if within(holder.utilization, 0.0, 1.0) else None,
        memory_utilization=holder.memory_utilization if within(holder.memory_utilization, 0.0, 1.0) else None,
    )


def within(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
