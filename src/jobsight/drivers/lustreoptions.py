"""How the collectors of a Lustre server read, and what they make of identifiers."""

from typing import NamedTuple

from jobsight.schema.units import Seconds

WAYS = ("files", "lctl")
SYSTEM = ("keep", "drop")


class Options(NamedTuple):
    """The same for `lustreost`, `lustremdt` and `lustrescan`."""

    through: str = "files"
    """`files`, or `lctl` to have `lctl get_param` read them: for servers where only that may."""
    formats: dict[str, str] = {"compute": "%j:%u:%H", "full": "%j:%u:%h", "login": "%e.%u"}  # noqa: RUF012
    """The `jobid_name` of each class of clients, by a name for it, tried in this order."""
    system: str = "keep"
    """Whether entries of the system's users are told: `keep` or `drop`. They are counted in any case."""
    system_below: int = 1000
    """Users with smaller numbers are the system's."""
    again: int = 1
    """How often an entry that holds still is told once more: so many lost messages cost nothing."""
    limit: Seconds = Seconds(20.0)
    """For one call of lctl."""


def check(options: Options) -> None:
    """What types cannot say."""
    from jobsight.formats.lustreid import Formats

    if options.through not in WAYS:
        raise ValueError(f"through: expected {' or '.join(WAYS)}, got {options.through!r}")
    if options.system not in SYSTEM:
        raise ValueError(f"system: expected {' or '.join(SYSTEM)}, got {options.system!r}")
    if options.again < 0:
        raise ValueError("again must not be less than nothing")
    if options.limit <= 0:
        raise ValueError("limit must be more than nothing")
    if "malformed" in options.formats:
        raise ValueError("formats: malformed is the name of what fits none")
    Formats(options.formats)
