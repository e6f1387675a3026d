"""The whole node's power, as its management controller (BMC) measures it: a slow mean, all its parts included.

Source: `ipmi-dcmi --get-system-power-statistics` (FreeIPMI) or `ipmitool dcmi power reading`, or a command of the
settings that prints what one of them prints; see `formats.dcmi`. As we are, or by sudo where that needs no password.
A controller answers slowly and dislikes haste: an answer serves for a while, and one that could not be renewed is
told with its age until it is too old.
"""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.clock import SystemClock
from jobsight.collector import AbsentError, ParseError, collector
from jobsight.command import CommandError
from jobsight.formats.dcmi import Dcmi, parse
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Seconds, Watts

COMMANDS = (("ipmi-dcmi", "--get-system-power-statistics"), ("ipmitool", "dcmi", "power", "reading"))
# How the kernel shows the controller.
DEVICES = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")
SUDO = ("sudo", "-n")
# Seconds to find out whether sudo would do it, and at least for what it then does.
SHORTEST = 2.0
GRANT = "sudo without a password for this command, or access to /dev/ipmi0, lets the agent ask"


@record
class Ipmi:
    """The node's power at one instant."""

    source: str = label("Whose format it was: ipmi-dcmi or ipmitool.")
    power: Watts | None = gauge("Power now.", default=None, grant=GRANT)
    power_least: Watts | None = gauge("The lowest in the controller's period.", default=None)
    power_most: Watts | None = gauge("The highest in it.", default=None)
    power_mean: Watts | None = gauge("The mean over it.", default=None)
    period: Seconds | None = gauge("How long that period is.", default=None)
    age: Seconds = gauge("How old the answer is.")


class Options(NamedTuple):
    """What is run, with which rights, how long it may take and how long its answer serves."""

    command: tuple[str, ...] = ()
    """Not set: the first of ipmi-dcmi and ipmitool that is there."""
    sudo: bool | None = None
    """Whether by `sudo -n`; not set: where it fails as we are and sudo would do it."""
    limit: Seconds = Seconds(5.0)
    """For a run."""
    fresh: Seconds = Seconds(45.0)
    """How long nobody asks again, whether there was an answer or not."""
    expires: Seconds = Seconds(300.0)
    """How long the last answer is told when there comes no other."""


def check(options: Options) -> None:
    """What types cannot say."""
    if options.limit <= 0:
        raise ValueError("limit must be more than nothing")
    if options.expires < options.fresh:
        raise ValueError("expires must not be less than fresh: an answer would be gone before it is renewed")


class Answer:
    """The last one, and by which words it came; lives with a host."""

    def __init__(self) -> None:
        self.reading: Dcmi | None = None
        self.at = 0.0
        self.asked = float("-inf")
        # Why the last question had no answer. Not the error itself, which holds on to all that ran when it came.
        self.trouble: tuple[type[Exception], str] | None = None
        self.way: tuple[str, ...] | None = None
        # Whether sudo would do it, asked once: each refusal is a line in the machine's log.
        self.sudo: bool | None = None
        self.clock = SystemClock()


@collector(every=60)
def ipmi(host: Host, options: Options) -> Iterator[Ipmi]:
    words = options.command or found(host)
    if not host.has(words[0]):
        raise AbsentError(f"{words[0]} is not there")
    # What the settings name is what the administrator lets us run.
    host.allow((words[0], SUDO[0]))
    # A copy is the same at any time.
    kept = host.keep(Answer) if host.live else Answer()
    now = kept.clock.steady()
    if now - kept.asked >= options.fresh:
        renew(host, options, words, kept, now)
    if kept.trouble is not None:
        kind, reason = kept.trouble
        host.miss("power", "forbidden" if "permission" in reason.lower() else "failed")
        if kept.reading is None or now - kept.at > options.expires:
            kept.reading = None
            raise kind(reason)
    if kept.reading is not None:
        yield from row_of(host, kept.reading, now - kept.at)


def found(host: Host) -> tuple[str, ...]:
    """The command for this machine; AbsentError where there is no controller, or nobody to ask it."""
    if host.live and not any(host.exists(path) for path in DEVICES):
        raise AbsentError(f"no {' or '.join('/' + path for path in DEVICES)}")
    for words in COMMANDS:
        if host.has(words[0]):
            return words
    raise AbsentError("neither ipmi-dcmi nor ipmitool is there")


def renew(host: Host, options: Options, words: tuple[str, ...], kept: Answer, now: float) -> None:
    """Ask. One that failed is not asked again at once either: it may hang, and somebody waits."""
    kept.asked = now
    try:
        kept.reading, kept.at, kept.trouble = parse(ask(host, options, words, kept)), now, None
    except (CommandError, ParseError) as error:
        kept.trouble = type(error), str(error)


def ask(host: Host, options: Options, words: tuple[str, ...], kept: Answer) -> str:
    """What the command prints, by the way that worked last time. All that is tried shares the time."""
    until = kept.clock.steady() + options.limit
    way = kept.way if kept.way is not None else SUDO if options.sudo else ()
    try:
        text = host.run((*way, *words), options.limit).text
    except CommandError:
        # The next run begins anew: rights may have been given or taken.
        kept.way = None
        if way or options.sudo is not None or not allowed(host, words, kept):
            raise
        way = SUDO
        text = host.run((*way, *words), max(SHORTEST, until - kept.clock.steady())).text
    kept.way = way
    return text


def allowed(host: Host, words: tuple[str, ...], kept: Answer) -> bool:
    """Whether sudo would run just this without a password, and would change anything."""
    if kept.sudo is None:
        kept.sudo = host.live and host.has(SUDO[0]) and host.user(host.uid("proc/self")) != "root"
        if kept.sudo:
            try:
                host.run((*SUDO, "-l", *words), SHORTEST)
            except CommandError:
                kept.sudo = False
    return kept.sudo


def row_of(host: Host, reading: Dcmi, age: float) -> Iterator[Ipmi]:
    if not reading.active:
        host.miss("power", "absent")
        return
    if reading.current is None:
        host.miss("power", "failed")
    yield Ipmi(
        source=reading.program,
        power=watts(reading.current),
        power_least=watts(reading.least),
        power_most=watts(reading.most),
        power_mean=watts(reading.mean),
        period=None if reading.period is None else Seconds(reading.period),
        age=Seconds(age),
    )


def watts(value: float | None) -> Watts | None:
    return None if value is None else Watts(value)
