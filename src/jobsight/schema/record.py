"""A record: what one row of one collector holds, declared once.

`total: Bytes = gauge("Memory the kernel can use.")`: the unit is the type, the kind is the function, the meaning
is the argument. Everything else that knows about fields (wire, tables, metrics, pages) is derived from here.

A row is a tuple with names. Not a dataclass: tuples turn into columns with one `zip`, take a third of the
memory, and an agent that holds two thousand of them must stay small.
"""

from _collections import _tuplegetter  # type: ignore[import-not-found]  # what namedtuple itself uses
from collections.abc import Callable
from types import UnionType
from typing import Any, ClassVar, NamedTuple, TypeVar, Union, dataclass_transform, get_args, get_origin

T = TypeVar("T")

REQUIRED: Any = object()


class Field(NamedTuple):
    """One column: its name, kind, unit and meaning."""

    name: str
    kind: str
    help: str
    unit: Any
    optional: bool
    default: Any
    grant: str


class _Declaration(NamedTuple):
    kind: str
    help: str
    default: Any
    grant: str


class Record(tuple[Any, ...]):
    """What every record class has; `@record` makes the rest."""

    __slots__ = ()
    fields: ClassVar[tuple[Field, ...]] = ()


def label(help: str, *, default: Any = REQUIRED, grant: str = "") -> Any:  # noqa: A002
    """A field that says which thing the row is about."""
    return _Declaration("label", help, default, grant)


def gauge(help: str, *, default: Any = REQUIRED, grant: str = "") -> Any:  # noqa: A002
    """A field that goes up and down; `grant` names the privilege that fills it where it would be missing."""
    return _Declaration("gauge", help, default, grant)


def counter(help: str, *, default: Any = REQUIRED, grant: str = "") -> Any:  # noqa: A002
    """A field that only grows until its source restarts."""
    return _Declaration("counter", help, default, grant)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(label, gauge, counter))
def record(cls: type[T]) -> type[T]:
    """Make a row class of a declaration."""
    fields = tuple(_field(cls, name, annotation) for name, annotation in cls.__annotations__.items())
    space: dict[str, Any] = {
        "__slots__": (),
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__new__": _constructor(cls.__name__, fields),
        "__repr__": _repr,
        "fields": fields,
    }
    for index, field in enumerate(fields):
        space[field.name] = _tuplegetter(index, field.help)
    return type(cls.__name__, (Record,), space)


def fields_of(cls: type[Any]) -> tuple[Field, ...]:
    """The fields of a record class, in column order."""
    fields: tuple[Field, ...] = cls.fields
    return fields


def columns(cls: type[Any], rows: list[Any]) -> dict[str, Any]:
    """Rows turned on their side: `{"pid": (..), "cpu_time": (..)}`."""
    if not rows:
        return {}
    return dict(zip((field.name for field in cls.fields), zip(*rows, strict=True), strict=True))


def _field(cls: type[Any], name: str, annotation: Any) -> Field:
    declared = cls.__dict__.get(name)
    if not isinstance(declared, _Declaration):
        raise TypeError(f"{cls.__name__}.{name} needs label(), gauge() or counter()")
    unit, optional = annotation, False
    if get_origin(annotation) in (UnionType, Union):
        unit = next(part for part in get_args(annotation) if part is not type(None))
        optional = True
    return Field(name, declared.kind, declared.help, unit, optional, declared.default, declared.grant)


def _constructor(name: str, fields: tuple[Field, ...]) -> Callable[..., Any]:
    # Written out and compiled once, as namedtuple does: four times quicker than collecting **values.
    parameters = ", ".join(f.name if f.default is REQUIRED else f"{f.name}=_d[{f.name!r}]" for f in fields)
    values = ", ".join(f.name for f in fields)
    source = f"lambda cls, *, {parameters}: _t(cls, ({values},))"
    space = {"_t": tuple.__new__, "_d": {f.name: f.default for f in fields}}
    made: Callable[..., Any] = eval(source, space)  # noqa: S307  # names come from a class body
    made.__qualname__ = f"{name}.__new__"
    return made


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={v!r}" for f, v in zip(self.fields, self, strict=True))
    return f"{type(self).__name__}({shown})"
