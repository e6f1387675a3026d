"""Which program a command is: an exact name, else the first of some expressions that matches. See `programs.tsv`.

A map is made of files, the site's own before the starter map. It remembers what it said of each command, and is
itself known by what its files say: whoever asks a changed map asks another one, so nothing stale can come back.
"""

import os
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from time import thread_time
from typing import NamedTuple

STARTER = os.path.join(os.path.dirname(__file__), "programs.tsv")
# The kernel keeps so much of a command's name: what is longer is known by its beginning too.
SHOWN = 15
# Commands remembered; with more all are looked up again.
MOST = 500_000
# An expression that needs so long for one name is none (seconds; others need millionths of that).
SLOW = 0.05
KINDS = ("exact", "regex")


class MapError(ValueError):
    """A map that cannot be read: names the file, the line and what is wrong."""


class Program(NamedTuple):
    """What a command is."""

    name: str
    tags: tuple[str, ...] = ()
    """Paths: `chemistry/quantum` is within `chemistry`."""

    def within(self, tag: str) -> bool:
        """Whether it is of a tag or of one within that."""
        return any(own == tag or own.startswith(f"{tag}/") for own in self.tags)


class Rule(NamedTuple):
    """One line of a map."""

    kind: str
    command: str
    program: Program
    arguments: re.Pattern[str] | None = None
    """Must be found in the command line, too."""
    pattern: re.Pattern[str] | None = None

    def fits(self, command: str, arguments: str | None) -> bool:
        if self.pattern is None or self.pattern.fullmatch(command[:SHOWN]) is None:
            return False
        return self.arguments is None or (arguments is not None and self.arguments.search(arguments) is not None)


class Layer:
    """The rules of one file: exact names are looked up, expressions tried in their order."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.exact: dict[str, Program] = {}
        self.ordered: list[Rule] = []
        cut: dict[str, Program] = {}
        for rule in rules:
            if rule.kind == "exact" and rule.arguments is None:
                self.exact.setdefault(rule.command, rule.program)
                cut.setdefault(rule.command[:SHOWN], rule.program)
            else:
                self.ordered.append(rule)
        self.exact = cut | self.exact
        # With a command line first: they say more than a name.
        self.detailed = [rule for rule in self.ordered if rule.arguments is not None]

    def find(self, command: str, arguments: str | None) -> Program | None:
        if arguments is not None:
            for rule in self.detailed:
                if rule.fits(command, arguments):
                    return rule.program
        if (found := self.exact.get(command)) is not None:
            return found
        return next((rule.program for rule in self.ordered if rule.fits(command, arguments)), None)


class ProgramMap(dict[str, Program | None]):
    """What each command is, found once a command. None for those no rule knows."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        """`files` are names, for errors, and texts; the first come first."""
        super().__init__()
        self._layers = [Layer(parse(text, file)) for file, text in files]
        self.version = sha256("\0".join(text for _, text in files).encode()).hexdigest()[:16]

    def __missing__(self, command: str) -> Program | None:
        found = self._find(command, None)
        if len(self) >= MOST:
            self.clear()
        self[command] = found
        return found

    def programs(self, commands: Iterable[str]) -> list[Program | None]:
        """Of each command."""
        return list(map(self.__getitem__, commands))

    def program(self, command: str, arguments: str | None = None) -> Program | None:
        """Of one command, by its command line too where that is known."""
        return self[command] if arguments is None else self._find(command, arguments)

    def names(self) -> list[Program]:
        """Every program there is a rule for, once."""
        found: dict[Program, None] = {}
        for layer in self._layers:
            found |= dict.fromkeys(layer.exact.values())
            found |= dict.fromkeys(rule.program for rule in layer.ordered)
        return list(found)

    def _find(self, command: str, arguments: str | None) -> Program | None:
        return next((found for layer in self._layers if (found := layer.find(command, arguments))), None)


def parse(text: str, file: str) -> list[Rule]:
    """The rules of a file. MapError names the first line that is none."""
    rules: list[Rule] = []
    places: dict[tuple[str, str, str], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")  # noqa: PLW2901
        if not line.strip() or line.startswith("#"):
            continue
        try:
            rule = _rule(line.split("\t"))
        except ValueError as error:
            raise MapError(f"{file}, line {number}: {error}") from None
        place = (rule.kind, rule.command, rule.arguments.pattern if rule.arguments else "")
        if place in places:
            raise MapError(f"{file}, line {number}: {rule.command!r} is already on line {places[place]}")
        places[place] = number
        rules.append(rule)
    return rules


def _rule(cells: list[str]) -> Rule:
    if not 3 <= len(cells) <= 5:
        raise ValueError(f"expected kind, command, program, tags and arguments with tabs between, got {cells!r}")
    kind, command, name, tags, arguments = [cell.strip() for cell in (*cells, "", "")][:5]
    if kind not in KINDS:
        raise ValueError(f"expected {' or '.join(KINDS)}, got {kind!r}")
    if not command or not name:
        raise ValueError("the command or the program has no name")
    return Rule(
        kind,
        command,
        Program(name, tuple(filter(None, (tag.strip().strip("/") for tag in tags.split(","))))),
        _expression(arguments) if arguments else None,
        _quick(_expression(command)) if kind == "regex" else _expression(re.escape(command[:SHOWN])),
    )


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None


def _quick(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """One that goes on for ever about a name it does not match, as `((a+)+)+b` does, would stop the whole server."""
    for letter in sorted({"a", *filter(str.isalnum, pattern.pattern)}):
        # One letter more each time: it grows so fast that the first that takes long is not yet for ever.
        for length in range(4, SHOWN):
            began = thread_time()
            pattern.fullmatch(f"{letter * length}\0")
            if thread_time() - began > SLOW:
                raise ValueError(f"{pattern.pattern!r} takes too long to say that it does not match")
    return pattern


class Maps:
    """The map in force: read again whenever a file says something else. Thread-safe, for a map never changes."""

    def __init__(self, own: str = "", *, starter: bool = True) -> None:
        self._paths = [*([own] if own else []), *([STARTER] if starter else [])]
        self._known: tuple[list[tuple[str, str]], ProgramMap] | None = None

    def current(self) -> ProgramMap:
        """MapError for a file that cannot be read, or that has a line which is no rule."""
        files = [(path, _text(path)) for path in self._paths]
        known = self._known
        if known is None or known[0] != files:
            known = self._known = (files, ProgramMap(files))
        return known[1]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise MapError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MapError(f"{path}: not UTF-8") from None
