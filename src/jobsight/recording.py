"""A host that keeps what a collector asked it for, so that the copy can stand for the machine ever after.

People are not kept: names and homes of users become user1, user2 …, the node becomes node1, in texts and in paths
alike. Accounts of the system stay. `Replay` reads the copy: it also knows what could not be read.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobsight.agent.run import run
from jobsight.clock import SystemClock
from jobsight.collector import Collector
from jobsight.command import Output
from jobsight.files import make_directory, replace
from jobsight.formats import container
from jobsight.formats.joblabels import named
from jobsight.host import Host, Space, recorded_as
from jobsight.schema.message import Message, Origin
from jobsight.schema.record import columns

# Written by `Recording.write` itself.
OWN = ("machine.json", "owners.json", "etc/passwd")
# Below are accounts of the system; 65534 is nobody.
FIRST_PERSON, NOBODY = 1000, 65534
ORIGIN = Origin("recorded", "node1", "boot1")


class Aliases:
    """Names to hide, each with the name that stands for it."""

    def __init__(self) -> None:
        self._alias: dict[str, str] = {}
        self._people: dict[str, str] = {}

    def person(self, name: str, home: str = "") -> str:
        """The alias of a user, the same each time."""
        alias = self._people.setdefault(name, f"user{len(self._people) + 1}")
        self._alias[name] = alias
        if home.count("/") > 1:
            self._alias[home] = f"/home/{alias}"
        return alias

    def node(self, name: str) -> None:
        """The machine's name, long and short."""
        for form in {name, name.partition(".")[0]} - {"", "localhost"}:
            self._alias[form] = "node1"

    def hide(self, text: bytes) -> bytes:
        """The text without the names. They are looked for as whole words; an underscore ends a word, as in
        `node1_slurmstepd.scope`.
        """
        if not self._alias:
            return text
        # Longest first: `ann` must not eat the beginning of `/home/ann`.
        names = sorted(map(os.fsencode, self._alias), key=len, reverse=True)
        words = rb"(?<![A-Za-z0-9])(?:" + b"|".join(map(re.escape, names)) + rb")(?![A-Za-z0-9])"
        return re.sub(words, lambda found: os.fsencode(self._alias[os.fsdecode(found[0])]), text)

    def hidden(self, value: Any) -> Any:
        """The same for a value of a row, or for a path."""
        return os.fsdecode(self.hide(os.fsencode(value))) if isinstance(value, str) else value


class Recording(Host):
    """A machine that remembers what it was asked. With `keep_names` nothing is replaced."""

    def __init__(self, root: str = "/", *, keep_names: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.forbidden: set[str] = set()
        self.owners: dict[str, int] = {}
        self.spaces: dict[str, Space] = {}
        self.users: dict[int, str] = {}
        self._paths: dict[int, str] = {}
        self._first_uptime: float | None = None
        self._keep_names = keep_names
        super().__init__(root)

    def read_bytes(self, path: str) -> bytes:
        with self._noting(path):
            return self._found(path, super().read_bytes(path))

    def piece(self, path: str, size: int = 4096) -> bytes:
        with self._noting(path):
            return self._found(path, super().piece(path, size))

    def pieces(self, path: str, size: int = 2**18) -> Iterator[bytes]:  # noqa: ARG002  # all of it is kept anyway
        yield self.read_bytes(path)

    def names(self, path: str) -> list[str]:
        if os.path.isdir(self.root + path):
            self.folders.add(path)
        return super().names(path)

    def exists(self, path: str) -> bool:
        if os.path.isdir(self.root + path):
            self.folders.add(path)
        elif os.path.isfile(self.root + path):
            self.glimpse(path)
        elif super().exists(path):
            self._found(path, b"")  # a device or a socket: that it is there is all a copy can tell
        return super().exists(path)

    def hold(self, path: str) -> int:
        with self._noting(path):
            held = super().hold(path)
        self._paths[held] = path
        return held

    def peek(self, held: int, size: int = 1024) -> bytes:
        return self._found(self._paths[held], super().peek(held, size))

    def told(self, path: str, content: bytes) -> None:
        self._found(path, content)

    def run(self, command: tuple[str, ...], limit: float, **options: Any) -> Output:
        output = super().run(command, limit, **options)
        # The first of a program stands for all whose words the copy does not know: words may tell the time.
        known = f"commands/{command[0]}" in self.files
        self._found(recorded_as(command) if known else f"commands/{command[0]}", output.text.encode())
        return output

    def space(self, path: str) -> Space | None:
        room = super().space(path)
        if room is not None:
            self.spaces[path] = room
        return room

    def uid(self, path: str) -> int:
        return self.owners.setdefault(path, super().uid(path))

    def user(self, uid: int) -> str:
        return self.users.setdefault(uid, super().user(uid))

    def uptime(self) -> float:
        if self._first_uptime is None:
            self._first_uptime = super().uptime()
        return self._first_uptime

    def aliases(self) -> Aliases:
        """Of the users that were looked up, in that order, then of the others the machine itself knows."""
        made = Aliases()
        if self._keep_names:
            return made
        homes = {}
        known = dict(self.users)
        for line in (super().glimpse("etc/passwd") or "").splitlines():
            parts = line.split(":")
            if len(parts) > 5 and parts[2].isdecimal():
                homes[parts[0]] = parts[5]
                known.setdefault(int(parts[2]), parts[0])
        for uid, name in known.items():
            if uid >= FIRST_PERSON and uid != NOBODY and name != str(uid):
                made.person(name, homes.get(name, ""))
        made.node(self.node())
        return made

    def write(self, into: str) -> None:
        """The copy: a tree that `Host` and `Replay` can read."""
        aliases = self.aliases()
        for path in sorted(self.folders):
            make_directory(f"{into}/{aliases.hidden(path)}")
        copies = dict.fromkeys(self.forbidden, b"") | self.files
        for path in sorted(copies):
            put(f"{into}/{aliases.hidden(path)}", aliases.hide(copies[path]))
        owners = {aliases.hidden(path): uid for path, uid in sorted(self.owners.items())}
        facts: dict[str, Any] = {"node": aliases.hidden(self.node()), "uptime": self.uptime(), "page": self.page()}
        if architecture := self.architecture():
            facts["architecture"] = architecture
        if self.spaces:
            facts["space"] = {aliases.hidden(path): list(room) for path, room in self.spaces.items()}
        if forbidden := self.forbidden - self.files.keys():
            facts["forbidden"] = sorted(map(aliases.hidden, forbidden))
        users = {aliases.hidden(name): uid for uid, name in sorted(self.users.items()) if name != str(uid)}
        lines = [f"{name}:x:{uid}:{uid}:::\n" for name, uid in users.items()]
        put(f"{into}/machine.json", as_json(facts))
        if owners:
            put(f"{into}/owners.json", as_json(owners))
        if lines:
            put(f"{into}/etc/passwd", "".join(lines).encode())
        _keep_empty(into)

    @contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except PermissionError:
            self.forbidden.add(path)
            raise

    def _found(self, path: str, data: bytes) -> bytes:
        # The first answer counts: what a collector reads twice in a run may have moved in between.
        if path not in OWN:
            # Of an environment only what the collector may look at: the rest may hold secrets.
            kept = named(data) + container.named(data) if path.endswith("/environ") else container.public(path, data)
            self.files.setdefault(path, kept)
        return data


class Replay(Host):
    """A recorded machine. What could not be read then cannot be read now."""

    def __init__(self, root: str) -> None:
        self._forbidden: frozenset[str] = frozenset()
        super().__init__(root)
        self._forbidden = frozenset(self._facts.get("forbidden", ()))

    def read_bytes(self, path: str) -> bytes:
        self._refuse(path)
        return super().read_bytes(path)

    def piece(self, path: str, size: int = 4096) -> bytes:
        self._refuse(path)
        return super().piece(path, size)

    def hold(self, path: str) -> int:
        self._refuse(path)
        return super().hold(path)

    def _refuse(self, path: str) -> None:
        if path in self._forbidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


class UnlikeError(RuntimeError):
    """The copy does not give what the machine gave."""


def record(collector: Collector, host: Recording, into: str) -> Message:
    """Run a collector and keep what it read under `into`/root, and what it made of it in `into`/expected.json.
    An absent source is not kept. UnlikeError if the copy reads differently.
    """
    message = run(collector, None, host, ORIGIN, SystemClock())
    if message.status == "absent":
        return message
    host.write(f"{into}/root")
    again = outcome(collector, replay(collector, Replay(f"{into}/root")))
    put(f"{into}/expected.json", as_json(again))
    aliases = host.aliases()
    rows = {name: tuple(map(aliases.hidden, values)) for name, values in message.rows.items()}
    there = outcome(collector, message._replace(rows=rows))
    if there != again:
        raise UnlikeError(difference(there, again))
    return message


def replay(collector: Collector, host: Host) -> Message:
    """One run on a recorded machine, with the collector's default options."""
    return run(collector, None, host, ORIGIN, SystemClock())


def outcome(collector: Collector, message: Message) -> dict[str, Any]:
    """What a test expects of a run: the rows as columns, in an order that does not depend on the directory's."""
    rows = sorted(
        zip(*message.rows.values(), strict=True),
        key=lambda row: [(value is not None, value) for value in row],
    )
    turned = {name: list(values) for name, values in columns(collector.record, rows).items()}
    return {"status": message.status.value, "missing": message.missing, "rows": turned}


def difference(there: dict[str, Any], again: dict[str, Any]) -> str:
    """One sentence on the first thing that differs."""
    for part in ("status", "missing"):
        if there[part] != again[part]:
            return f"{part} was {there[part]!r} on the machine and is {again[part]!r} in the copy"
    for name, values in there["rows"].items():
        if values != again["rows"].get(name):
            return f"column {name!r} differs between the machine and the copy"
    return "the copy has more columns than the machine gave"


def as_json(value: dict[str, Any]) -> bytes:
    """One line a column, so that a change of a fixture reads as a diff."""
    if isinstance(value.get("rows"), dict):
        lines = [f"    {json.dumps(name)}: {json.dumps(values)}" for name, values in value["rows"].items()]
        rows = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
        others = [f"  {json.dumps(key)}: {json.dumps(value[key])}" for key in value if key != "rows"]
        return ("{\n" + ",\n".join([*others, f'  "rows": {rows}']) + "\n}\n").encode()
    return (json.dumps(value, indent=2) + "\n").encode()


def put(path: str, data: bytes) -> None:
    make_directory(os.path.dirname(path))
    replace(path, data)


def _keep_empty(into: str) -> None:
    """Version control forgets empty directories; that one was there may be all the collector needs."""
    for place, folders, files in os.walk(into):
        if not folders and not files:
            put(f"{place}/.keep", b"")
