"""What a collector is: a function from a host to the rows of one record.

The module is its registration and its name; the return annotation is its record. The author writes the reading
and the parsing. Absence, time, deadlines and errors belong to `agent.runner`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_args, get_type_hints

from jobsight.host import Host


class ParseError(ValueError):
    """A source that exists and does not read as its format says. Say what was expected and what was seen."""


class AbsentError(RuntimeError):
    """The source is not this machine's to read, which the collector saw only when it ran."""


class Collector(NamedTuple):
    """One source, one record, one table."""

    name: str
    record: type[Any]
    options: type[Any] | None
    needs: tuple[str, ...]
    every: float
    runs: tuple[str, ...]
    function: Callable[..., Iterator[Any]]
    through: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """The module's text: what it reads and what is odd about it."""
        import sys

        return (sys.modules[self.function.__module__].__doc__ or "").strip()

    def rows(self, host: Host, options: Any = None) -> list[Any]:
        """Run once. Options default to the collector's own defaults."""
        host.allow(self.runs + self.through)
        if self.options is None:
            return list(self.function(host))
        return list(self.function(host, options if options is not None else self.options()))

    def present(self, host: Host) -> bool:
        """Whether this machine has what the collector reads and runs: one of `needs`, and one of `runs`."""
        if self.needs and not any(host.exists(path) for path in self.needs):
            return False
        return not self.runs or any(host.has(program) for program in self.runs)


def collector(
    *needs: str, every: float = 30.0, runs: tuple[str, ...] = (), through: tuple[str, ...] = ()
) -> Callable[[Callable[..., Iterator[Any]]], Callable[..., Iterator[Any]]]:
    """Mark the collector of a module. `needs`: paths of which one must exist, else the source is absent. `runs`:
    programs it may run, of which one must be there; sampling runs none. `through`: programs by which it may run those
    with other rights.
    """

    def mark(function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        hints = get_type_hints(function)
        (row,) = get_args(hints.pop("return"))
        hints.pop("host")
        function.collector = Collector(  # type: ignore[attr-defined]
            name=function.__module__.rpartition(".")[2],
            record=row,
            options=next(iter(hints.values()), None),
            needs=needs,
            every=every,
            runs=runs,
            function=function,
            through=through,
        )
        return function

    return mark
