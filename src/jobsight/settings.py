"""Settings: one YAML file → named tuples. Everything has a default; every mistake is one sentence.

What may stand under `collect` and `sinks` is not listed here: the collectors and sinks themselves declare it.
"""

import os
import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from jobsight import catalogue, metering, serving
from jobsight.formats import quantity
from jobsight.metering import Energy
from jobsight.schema.units import Bytes, Seconds
from jobsight.serving import Exporter, Programs, Serve

# Tables besides those of the collectors.
DERIVED: tuple[str, ...] = ("run", "usage", "slice", "share", "tally", "capacity", "stint", "energy")
DERIVED += ("lustreslice", "lustretotal", "lustreshare", "lustredensity", "lustreseries")
# How the address of a database begins; anything else is a directory.
DATABASES = ("postgresql://", "postgres://")


class SettingsError(ValueError):
    """A setting that cannot be: names the file, the key and what is known."""


def home() -> str:
    """Where jobsight keeps what it must not forget."""
    if named := os.environ.get("JOBSIGHT_HOME"):
        return named
    if os.geteuid() == 0:
        return "/var/lib/jobsight"
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "jobsight")


class Spool(NamedTuple):
    """Messages that wait for a destination: bounded in bytes and age, oldest out first."""

    path: str = ""
    """Below `home()` and by node if not set: a home directory may be shared by many."""
    size: Bytes = Bytes(512 * 2**20)
    age: Seconds = Seconds(7 * 86400)


class Store(NamedTuple):
    """Where the server keeps rows, and for how long."""

    path: str = ""
    """Below `home()` if not set. With `url` what is refused is kept there, and nothing else."""
    url: str | None = None
    """A PostgreSQL database that takes the rows and jobs in place of `path`."""
    keep: Seconds = Seconds(30 * 86400)
    """Rows as they were sent."""
    keep_rows: dict[str, Seconds] = {}  # noqa: RUF012  # nobody writes to it
    """Tables that are kept otherwise: `{process: 14d, usage: 2y}`."""
    keep_jobs: Seconds | None = None
    """Jobs and their totals are kept for ever if not set."""
    backlog: Bytes = Bytes(2 * 2**30)  # with so much waiting to be digested senders are told to come again

    @property
    def place(self) -> str:
        """Where rows and jobs are: an address or a directory."""
        return self.url or self.path


class Common(NamedTuple):
    """What every collector can be told."""

    enabled: bool = True
    every: Seconds | None = None
    deadline: Seconds | None = None


class Plan(NamedTuple):
    """One collector's settings in force."""

    name: str
    enabled: bool
    every: float
    deadline: float
    options: Any


class Destination(NamedTuple):
    """One sink's settings in force."""

    name: str
    options: Any


class Settings(NamedTuple):
    """Everything one process needs to know."""

    cluster: str = "local"
    node: str | None = None
    sinks: tuple[Destination, ...] = ()
    spool: Spool = Spool()
    collect: tuple[Plan, ...] = ()
    store: Store = Store()
    serve: Serve = Serve()
    exporter: Exporter = Exporter()
    programs: Programs = Programs()
    energy: Energy = Energy()
    timezone: str = ""  # of hours and days in reports, as Europe/Oslo; the machine's own if not set
    periods: dict[str, str] = {}  # noqa: RUF012  # that reports know by name: `{spring: 2026-04-01..2026-09-30}`
    findings: dict[str, Any] = {}  # noqa: RUF012  # as written: the server reads it, see `analyse.thresholds`
    lock: str = ""
    """Below `home()` and by node if not set."""


def parse(text: str, file: str, only: Collection[str] = ()) -> Settings:
    """Settings from YAML text; `file` is for the error's sake."""
    return from_values(values(text, file), file, only)


def values(text: str, file: str) -> Any:
    """What YAML text says, as plain values."""
    import yaml

    try:
        # The C loader is ten times quicker and there on every distribution; the Python one says the same.
        given = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        raise SettingsError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    return given or {}


def from_values(given: Any, file: str = "settings", only: Collection[str] = ()) -> Settings:
    """Settings from plain values, as YAML gives them. With `only`, the plans of those collectors and no others are
    made: each means loading its module.
    """
    if not isinstance(given, dict):
        raise SettingsError(f"{file}: expected keys and values, got {_word(given)}")
    rest = {key: value for key, value in given.items() if key not in ("collect", "sinks", "findings")}
    made: Settings = _build(Settings, rest, file, "")
    if made.store.url is not None and not made.store.url.startswith(DATABASES):
        # Not the value itself: there may be a password in it.
        raise SettingsError(f"{file}: store.url: expected postgresql://USER@HOST/DATABASE")
    for table in made.store.keep_rows:
        if table not in (*catalogue.collector_names(), *DERIVED):
            raise SettingsError(f"{file}: store.keep_rows.{table}: no such table")
    _checked(serving, made.serve, file, "serve")
    _checked(metering, made.energy, file, "energy")
    if made.serve.kafka is not None:
        # What holds for one who sends to brokers holds for one who reads from them.
        _checked(catalogue.sink("kafka"), made.serve.kafka, file, "serve.kafka")
    node = os.uname().nodename
    return made._replace(
        collect=_plans(given.get("collect"), file, only),
        sinks=_destinations(given.get("sinks"), file),
        findings=_mapping(given.get("findings") or {}, file, "findings"),
        spool=made.spool._replace(path=made.spool.path or os.path.join(home(), "spool", node)),
        store=made.store._replace(path=made.store.path or os.path.join(home(), "store")),
        lock=made.lock or os.path.join(home(), f"agent-{node}.lock"),
    )


def _plans(given: Any, file: str, only: Collection[str]) -> tuple[Plan, ...]:
    given = _mapping(given or {}, file, "collect")
    known = catalogue.collector_names()
    for name in given:
        _known(name, known, file, "collect.")
    return tuple(_plan(name, given.get(name), file) for name in known if name in only or not only)


def _plan(name: str, given: Any, file: str) -> Plan:
    key = f"collect.{name}"
    given = _mapping(given or {}, file, key)
    found = catalogue.collector(name)
    shared = set(Common._fields)
    own = set(found.options._fields) if found.options else set()
    for word in given:
        _known(word, sorted(shared | own), file, f"{key}.")
    common = _build(Common, {k: v for k, v in given.items() if k in shared}, file, f"{key}.")
    every = found.every if common.every is None else common.every
    if every <= 0:
        raise SettingsError(f"{file}: {key}.every: must be more than nothing")
    options = None
    if found.options:
        options = _build(found.options, {k: v for k, v in given.items() if k in own}, file, f"{key}.")
        _checked(sys.modules[found.function.__module__], options, file, key)
    # What the programs of a collector may take is its own setting; it must be let to its end, reading included.
    usual = max(10.0, 2 * getattr(options, "limit", 0.0))
    deadline = min(every, usual) if common.deadline is None else common.deadline
    return Plan(name, common.enabled, float(every), float(deadline), options)


def _destinations(given: Any, file: str) -> tuple[Destination, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise SettingsError(f"{file}: sinks: expected a list such as [{{stdout: {{}}}}], got {_word(given)}")
    made = tuple(_destination(item, file, f"sinks[{index}]") for index, item in enumerate(given))
    spools: dict[tuple[Any, ...], int] = {}
    for index, (name, options) in enumerate(made):
        where = getattr(options, "url", None) or tuple(sorted(getattr(options, "brokers", ())))
        key = (name, where, getattr(options, "prefix", None))
        if where and spools.setdefault(key, index) != index:
            # Both would empty one spool, each without knowing of the other.
            raise SettingsError(f"{file}: sinks[{index}]: goes to the same place as sinks[{spools[key]}]")
    return made


def _destination(given: Any, file: str, key: str) -> Destination:
    if isinstance(given, str):
        given = {given: {}}
    given = _mapping(given, file, key)
    if len(given) != 1:
        raise SettingsError(f"{file}: {key}: expected one sink, such as stdout: {{}}, got {len(given)}")
    ((name, values),) = given.items()
    try:
        module = catalogue.sink(str(name))
    except KeyError as error:
        raise SettingsError(f"{file}: {key}: {error.args[0]}") from None
    options = _build(module.Options, values or {}, file, f"{key}.{name}.")
    _checked(module, options, file, f"{key}.{name}")
    return Destination(name, options)


def _checked(module: ModuleType, options: Any, file: str, key: str) -> None:
    """What types cannot say, the module that declares the options may."""
    if hasattr(module, "check"):
        try:
            module.check(options)
        except ValueError as error:
            raise SettingsError(f"{file}: {key}: {error}") from None


def options(cls: Any, given: Any, file: str, key: str) -> Any:
    """A named tuple from what stands under a key."""
    return _build(cls, given, file, f"{key}.")


def _build(cls: Any, given: Any, file: str, prefix: str) -> Any:
    given = _mapping(given, file, prefix.rstrip("."))
    hints = get_type_hints(cls)
    for key in given:
        _known(key, list(cls._fields), file, prefix)
    values = {key: _value(hints[key], value, file, prefix + key) for key, value in given.items()}
    for name in cls._fields:
        if name not in values and name not in cls._field_defaults:
            raise SettingsError(f"{file}: {prefix}{name} is needed")
    return cls(**values)


def _value(hint: Any, value: Any, file: str, key: str) -> Any:
    if type(None) in get_args(hint):
        if value is None:
            return None
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    if hasattr(hint, "_fields"):
        return _build(hint, value, file, key + ".")
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise SettingsError(f"{file}: {key}: expected a list, got {_word(value)}")
        return tuple(_value(get_args(hint)[0], item, file, f"{key}[{i}]") for i, item in enumerate(value))
    if get_origin(hint) is dict:
        inner = get_args(hint)[1]
        return {str(k): _value(inner, v, file, f"{key}.{k}") for k, v in _mapping(value, file, key).items()}
    for unit, read in ((Seconds, quantity.duration), (Bytes, quantity.size)):
        if hint is unit:
            return _quantity(read, value, file, key)
    if hint is float and type(value) is int:
        return float(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise SettingsError(f"{file}: {key}: expected {_TYPES[hint]}, got {_word(value)}")
    return value


def _quantity(read: Any, value: Any, file: str, key: str) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    try:
        return read(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise SettingsError(f"{file}: {key}: {error}") from None


_TYPES = {str: "text", int: "a whole number", bool: "true or false", float: "a number"}


def _word(value: Any) -> str:
    return "nothing" if value is None else f"{value!r}"


def _mapping(given: Any, file: str, key: str) -> dict[Any, Any]:
    if not isinstance(given, dict):
        raise SettingsError(f"{file}: {key or 'the file'}: expected keys and values, got {_word(given)}")
    return given


def _known(key: Any, known: list[str], file: str, prefix: str) -> None:
    if key not in known:
        raise SettingsError(f"{file}: unknown key {prefix}{key}; known here: {', '.join(known)}")
