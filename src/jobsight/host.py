"""The only door to the machine: read, list, hold open, run.

Every path is relative to a root, so a directory tree can stand for a machine: in tests, with `--root`, and inside
a container that has the real one mounted elsewhere. Where the tree is a copy, two side files say what copies
cannot carry: `owners.json` (uid by path) and `machine.json` (host name, seconds since boot, page size).
"""

import json
import os
import time
from _thread import get_ident
from collections.abc import Iterator
from errno import ENOENT
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from jobsight.command import Output

T = TypeVar("T")

# Not to wait: a named pipe that somebody put where a file is expected reads as empty.
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
# Larger than any /proc file of one process; larger files are read in a loop.
PIECE = 65536


class Space(NamedTuple):
    """Room on a filesystem, in bytes and in files."""

    size: int
    free: int
    available: int
    files: int
    files_free: int


def recorded_as(command: tuple[str, ...]) -> str:
    """Where a copy has what a program printed when it was given just these words."""
    return f"commands/{' '.join(command).replace('/', '_')[:200]}"


class Host:
    """A machine, seen through its files."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/") + "/"
        self.live = self.root == "/"
        self._kept: dict[type[Any], Any] = {}
        self._missing: dict[int, dict[str, str]] = {}
        self._users: dict[int, str] = {}
        self._allowed: dict[int, tuple[str, ...]] = {}
        self._began: dict[int, float] = {}
        self._held: set[int] = set()
        self._closed = False
        self._facts = {} if self.live else self._side("machine.json")
        self._page = int(self._facts.get("page") or os.sysconf("SC_PAGESIZE"))
        self._owners = {} if self.live else self._side("owners.json")

    # Files. A path that does not exist raises FileNotFoundError, one we may not read PermissionError.

    def read_bytes(self, path: str) -> bytes:
        """The whole file, as the kernel gives it now."""
        fd = os.open(self.root + path, FLAGS)
        try:
            parts = [os.read(fd, PIECE)]
            while parts[-1]:
                parts.append(os.read(fd, PIECE))
        finally:
            os.close(fd)
        return b"".join(parts)

    def pieces(self, path: str, size: int = 2**18) -> Iterator[bytes]:
        """The whole file, opened once and read to its end, by pieces of at least `size` but for the last: for what
        would not fit in memory.
        """
        held = self.hold(path)
        try:
            while parts := self._parts(held, size):
                yield b"".join(parts)
        finally:
            self.let_go(held)

    def _parts(self, held: int, size: int) -> list[bytes]:
        # The kernel gives some files by pages, however much is asked for.
        parts: list[bytes] = []
        while size > 0 and (part := os.read(held, size)):
            parts.append(part)
            size -= len(part)
        return parts

    def piece(self, path: str, size: int = 4096) -> bytes:
        """A file that the kernel gives in one piece, as all those of one process: half the calls of `read_bytes`."""
        fd = os.open(self.root + path, FLAGS)
        try:
            return os.read(fd, size)
        finally:
            os.close(fd)

    def read(self, path: str) -> str:
        r"""The whole file as text; bytes that are not UTF-8 become `\xNN`, so nothing is lost and nothing breaks."""
        return self.read_bytes(path).decode("utf-8", "backslashreplace")

    def glimpse(self, path: str, column: str = "") -> str | None:
        """The file, or None if it is not there (any more) or not for us; the latter is said of `column`."""
        try:
            return self.read(path)
        except PermissionError:
            if column:
                self.miss(column, "forbidden")
        except OSError:
            pass
        return None

    def names(self, path: str) -> list[str]:
        """What a directory holds; empty if it is not there (any more) or not for us."""
        try:
            return os.listdir(self.root + path)
        except OSError:
            return []

    def space(self, path: str) -> Space | None:
        """Room on the filesystem of a path; None if it is not there or not for us. A copy has it on the side."""
        if not self.live:
            told = self._facts.get("space", {}).get(path)
            return Space(*told) if told else None
        try:
            found = os.statvfs(self.root + path)
        except OSError:
            return None
        block = found.f_frsize
        return Space(
            found.f_blocks * block, found.f_bfree * block, found.f_bavail * block, found.f_files, found.f_ffree
        )

    def exists(self, path: str) -> bool:
        return os.path.exists(self.root + path)

    # Held files: opened once, read many times. On /proc/PID a held descriptor also pins identity: once the
    # process is gone every read fails, even if the number lives again.

    def hold(self, path: str) -> int:
        if self._closed:
            raise FileNotFoundError(ENOENT, "this host was let go", path)
        held = os.open(self.root + path, FLAGS)
        self._held.add(held)
        return held

    def peek(self, held: int, size: int = 1024) -> bytes:
        return os.pread(held, size, 0)

    def let_go(self, held: int) -> None:
        # Only what is ours: after `close` the number may be another file's.
        if held in self._held:
            self._held.remove(held)
            os.close(held)

    def close(self) -> None:
        """Let go of everything. What a collector does with this host afterwards fails, as if all were gone."""
        self._closed = True
        while self._held:
            os.close(self._held.pop())

    def room(self) -> int:
        """How many files may be held; raises the soft limit as far as it goes."""
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
                soft = hard
            except (OSError, ValueError):
                pass
        return max(0, soft - 128)

    # Programs: those a collector declares with `runs=`, and no others. A copy has what they printed, in files
    # `commands/<the words, with _ for />` or, where the words tell a time, `commands/<program>`.

    def has(self, program: str) -> bool:
        """Whether a program is there to be run."""
        if not self.live:
            return any(name.split(" ", 1)[0] == program for name in self.names("commands"))
        from jobsight.command import find

        return find(program) is not None

    def allow(self, programs: tuple[str, ...]) -> None:
        """Say what may be run in this thread from now on."""
        self._allowed[get_ident()] = programs

    def run(self, command: tuple[str, ...], limit: float, **options: Any) -> "Output":
        """Run a program, see `jobsight.command.run`; CommandError if it is not declared or does not end well."""
        from jobsight import command as door

        if command[0] not in self._allowed.get(get_ident(), ()):
            raise door.CommandError(f"{command[0]} is not among what this collector says it runs")
        if self.live:
            return door.run(command, limit, **options)
        for path in (recorded_as(command), f"commands/{command[0]}"):
            if self.exists(path):
                return door.Output(0, self.read(path), "")
        raise door.CommandError(f"{command[0]} is not there: the copy has no commands/{command[0]}")

    def told(self, path: str, content: bytes) -> None:
        """What a library said, under the path where a copy has it: there is no library in a copy."""

    # People and the machine itself.

    def uid(self, path: str) -> int:
        """Who owns the path: for /proc/PID, whose process it is."""
        if self.live or path not in self._owners:
            return os.stat(self.root + path).st_uid
        return int(self._owners[path])

    def user(self, uid: int) -> str:
        """The user's name, or the number if nobody has it. Looked up once: directories may be slow."""
        name = self._users.get(uid)
        if name is None:
            name = self._users[uid] = self._look_up(uid)
        return name

    def node(self) -> str:
        return str(self._facts.get("node") or os.uname().nodename)

    def architecture(self) -> str | None:
        """The machine's instruction set; a copy has it on the side or not at all."""
        told = self._facts.get("architecture")
        return str(told) if told else (os.uname().machine if self.live else None)

    def uptime(self) -> float:
        """Seconds since boot, suspended time included, as process start times count them."""
        return float(self._facts.get("uptime") or time.clock_gettime(time.CLOCK_BOOTTIME))

    def boot(self) -> str:
        """The kernel's name for this boot; empty where it has none."""
        return (self.glimpse("proc/sys/kernel/random/boot_id") or "").strip()

    def page(self) -> int:
        return self._page

    # What a collector may keep and say besides its rows.

    def keep(self, kind: type[T]) -> T:
        """The one `kind` that lives with this host. What collectors keep may only save reading: a cold host gives
        the same rows.
        """
        found: T | None = self._kept.get(kind)
        if found is None:
            found = self._kept[kind] = kind()
        return found

    def begin(self, time: float) -> None:
        """Say that a run begins in this thread, and which time its message has."""
        self._began[get_ident()] = time

    def began(self) -> float | None:
        """The time of the message of this thread's run, since 1970; None where none was said to have begun."""
        return self._began.get(get_ident())

    def miss(self, column: str, reason: str) -> None:
        """Say why values of a column are missing in this run: absent, forbidden, failed or late."""
        self._missing.setdefault(get_ident(), {})[column] = reason

    def missed(self) -> dict[str, str]:
        """What was said with `miss` since the last call, in this thread."""
        return self._missing.pop(get_ident(), {})

    def _look_up(self, uid: int) -> str:
        if self.live:
            import pwd

            try:
                return pwd.getpwuid(uid).pw_name
            except KeyError:
                return str(uid)
        for line in (self.glimpse("etc/passwd") or "").splitlines():
            parts = line.split(":")
            if len(parts) > 2 and parts[2] == str(uid):
                return parts[0]
        return str(uid)

    def _side(self, name: str) -> dict[str, Any]:
        text = self.glimpse(name)
        facts: dict[str, Any] = json.loads(text) if text else {}
        return facts
