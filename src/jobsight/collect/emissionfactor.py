"""How much CO2 a kilowatt hour causes, by whoever says so: now, where one can be asked, and over a year.

Sources: RTE's eCO2mix (France, every quarter of an hour), Electricity Maps (zones of the world, with a token), yearly
figures of Our World in Data that lie in the program (`formats.owid`), a constant of the settings. One agent or the
server is told to ask, by `country`, `zone` or `providers`; on all others this is absent. Answers serve for half an
hour; one that could not be renewed is told with its age until it is too old.
"""

from collections.abc import Iterator
from typing import NamedTuple

from jobsight.clock import Clock, SystemClock
from jobsight.collector import AbsentError, ParseError, collector
from jobsight.formats import jsonpath, owid
from jobsight.host import Host
from jobsight.schema.record import gauge, label, record
from jobsight.schema.units import Seconds

# Where a copy of a machine has what was answered.
RECORDED = "emissions"
ASKED, STATIC = ("rte", "emaps"), ("owid", "constant")
# No grid has as much: peat alone makes 1200.
MOST = 2000.0
# A zone's name; somebody else's answer may hold anything.
LONGEST = 64
RTE_URL = (
    "https://reseaux-energies-rte.opendatasoft.com/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records"
    "?select=taux_co2,date_heure&where=taux_co2%20is%20not%20null&order_by=date_heure%20desc&limit=1"
)
EMAPS_URL = "https://api.electricitymaps.com/v3/carbon-intensity/latest?zone={zone}"


@record
class Emissionfactor:
    """One source's word."""

    provider: str = label("rte, emaps, owid or constant.")
    zone: str = label("What it is about: a country's two letters, another name of the provider's, or WORLD.")
    factor: float = gauge("Grams of CO2 equivalent that a kilowatt hour causes.")
    vintage: str = label("Of when it is: a year, or `now`; empty for a constant.")
    valid: Seconds | None = gauge("Since when it holds, since 1970.", default=None)
    age: Seconds = gauge("How long ago it was answered.")
    trouble: str | None = label("Why the last question had no answer.", default=None)


class Rte(NamedTuple):
    """Where RTE is asked, and where in the answer the values stand."""

    url: str = RTE_URL
    factor: str = "results.0.taux_co2"
    valid: str = "results.0.date_heure"


class Emaps(NamedTuple):
    """The same of Electricity Maps; `{zone}` stands for the zone, `header` is how the token is given."""

    url: str = EMAPS_URL
    factor: str = "carbonIntensity"
    valid: str = "datetime"
    header: str = "auth-token"


class Options(NamedTuple):
    """Who is asked about what."""

    country: str = ""
    """Two letters (ISO 3166). With FR, RTE is asked."""
    zone: str = ""
    """Electricity Maps' name for the grid, where it is not the country."""
    providers: tuple[str, ...] = ()
    """Of rte, emaps, owid, constant; not set: those that can be asked about the country."""
    token_file: str | None = None
    """With Electricity Maps' token."""
    constant: float = 475.0
    """The world's mean, as it is often given."""
    limit: Seconds = Seconds(5.0)
    """For a question."""
    fresh: Seconds = Seconds(1800.0)
    """How long nobody asks again, whether there was an answer or not."""
    expires: Seconds = Seconds(86400.0)
    """How long the last answer is told when there comes no other."""
    rte: Rte = Rte()
    emaps: Emaps = Emaps()


def check(options: Options) -> None:
    """What types cannot say."""
    for name in options.providers:
        if name not in (*ASKED, *STATIC):
            raise ValueError(f"providers: no {name!r}; there are {', '.join((*ASKED, *STATIC))}")
    if "emaps" in options.providers and not (options.token_file and (options.zone or options.country)):
        raise ValueError("Electricity Maps needs token_file and a zone or country")
    if not 0 < options.constant <= MOST:
        raise ValueError(f"constant: expected more than 0 and at most {MOST:g} grams a kilowatt hour")
    if options.limit <= 0 or options.expires < options.fresh:
        raise ValueError("limit must be more than nothing, and expires not less than fresh")
    for url in (options.rte.url, options.emaps.url):
        if not url.startswith(("https://", "http://")):
            raise ValueError(f"expected an address such as https://example.org/, got {url!r}")


class Said(NamedTuple):
    """What a provider answered."""

    factor: float
    valid: float | None
    zone: str


class Memory:
    """One provider's last answer; lives with a host."""

    def __init__(self) -> None:
        self.said: Said | None = None
        self.at = 0.0
        self.asked = float("-inf")
        self.trouble: str | None = None
        self.late = False


class Memories:
    """Of all providers."""

    def __init__(self) -> None:
        self.of: dict[str, Memory] = {name: Memory() for name in ASKED}
        self.clock: Clock = SystemClock()


@collector(RECORDED, "proc/net/dev", every=1800)
def emissionfactor(host: Host, options: Options) -> Iterator[Emissionfactor]:
    chosen = providers(options) if host.live else recorded(host)
    if not chosen:
        raise AbsentError("neither a country nor a provider is set")
    # A copy is the same at any time.
    memories = host.keep(Memories) if host.live else Memories()
    rows = [
        row
        for name in chosen
        for row in (told(host, options, name, memories) if name in ASKED else still(name, options))
    ]
    if not rows:
        raise ParseError("; ".join(f"{name}: {memories.of[name].trouble}" for name in chosen if name in ASKED))
    yield from rows


def providers(options: Options) -> tuple[str, ...]:
    """Those of the settings, else all that the country and the token open."""
    if options.providers or not (options.country or options.zone):
        return options.providers
    asked = (("rte",) if options.country.upper() == "FR" else ()) + (("emaps",) if options.token_file else ())
    return (*asked, *STATIC)


def recorded(host: Host) -> tuple[str, ...]:
    return (*(name for name in ASKED if host.exists(f"{RECORDED}/{name}.json")), *STATIC)


def still(name: str, options: Options) -> Iterator[Emissionfactor]:
    """What needs nobody's answer. A country that is not in the table has none."""
    if name == "constant":
        yield Emissionfactor(provider=name, zone="WORLD", factor=options.constant, vintage="", age=Seconds(0.0))
    elif (found := owid.yearly(options.country)) is not None:
        yield Emissionfactor(
            provider=name, zone=found.zone, factor=found.factor, vintage=str(found.year), age=Seconds(0.0)
        )


def told(host: Host, options: Options, name: str, memories: Memories) -> Iterator[Emissionfactor]:
    """The last answer, renewed when it is time; none if there is none that still counts."""
    memory, now = memories.of[name], memories.clock.steady()
    if now - memory.asked >= options.fresh:
        memory.asked = now
        renew(host, options, name, memory, now)
    if memory.trouble is not None:
        host.miss("factor", "late" if memory.late else "failed")
    if memory.said is None or now - memory.at > options.expires:
        memory.said = None
        return
    yield Emissionfactor(
        provider=name,
        zone="FR" if name == "rte" else memory.said.zone or options.zone or options.country.upper(),
        factor=memory.said.factor,
        vintage="now",
        valid=None if memory.said.valid is None else Seconds(memory.said.valid),
        age=Seconds(now - memory.at),
        trouble=memory.trouble,
    )


def renew(host: Host, options: Options, name: str, memory: Memory, now: float) -> None:
    """Ask. What fails leaves the last good answer in its place."""
    try:
        way: Rte | Emaps = options.rte if name == "rte" else options.emaps
        memory.said, memory.at = parse(asked(host, options, name), way), now
        memory.trouble, memory.late = None, False
    except (ParseError, OSError) as error:
        if not host.live:
            raise
        memory.trouble, memory.late = str(error)[:200], type(error).__name__ == "LateError"


def asked(host: Host, options: Options, name: str) -> bytes:
    path = f"{RECORDED}/{name}.json"
    if not host.live:
        return host.read_bytes(path)
    from urllib.parse import quote

    from jobsight.drivers.webanswer import answer

    headers = {}
    url = options.rte.url
    if name == "emaps":
        url = options.emaps.url.replace("{zone}", quote(options.zone or options.country.upper(), safe=""))
        token = host.read((options.token_file or "").lstrip("/")).strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ParseError("token_file: expected a token of printable letters")
        headers = {options.emaps.header: token}
    found = answer(url, headers, options.limit)
    host.told(path, found)
    return found


def parse(text: bytes, way: Rte | Emaps) -> Said:
    """A provider's answer. That it does not say since when it holds is no reason to refuse it."""
    answer = jsonpath.loaded(text)
    factor = jsonpath.number(answer, way.factor, 0.0, MOST)
    try:
        valid = jsonpath.instant(answer, way.valid)
    except ParseError:
        valid = None
    zone = answer.get("zone") if isinstance(answer, dict) else None
    fit = isinstance(zone, str) and len(zone) <= LONGEST and zone.isprintable()
    return Said(factor, valid, str(zone) if fit else "")
