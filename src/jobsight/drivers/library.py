"""A maker's shared library, by ctypes: its calls, and which of them failed."""

import ctypes
from ctypes import byref, c_uint, create_string_buffer, sizeof
from typing import Any

from jobsight.drivers.soname import places


class LibraryError(RuntimeError):
    """The library cannot be used, and which call said so."""


class Library:
    """A library, loaded. A call returns a status, and nought means that it went well."""

    def __init__(
        self, names: tuple[str, ...], unsupported: int, quiet: frozenset[int], reasons: dict[int, str]
    ) -> None:
        self._library = load(names)
        self._unsupported = unsupported
        # What a card without the feature says: no trouble.
        self._quiet = quiet | {unsupported}
        self._reasons = reasons
        self._trouble: list[str] = []

    def begin(self, name: str, *arguments: Any) -> None:
        """The call that must come first, and must go well."""
        if status := self.call(name, *arguments):
            raise LibraryError(f"{name}: {self.reason(status)}")

    def call(self, name: str, *arguments: Any) -> int:
        """A call's status; one that this release does not have is not supported."""
        function = getattr(self._library, name, None)
        return self._unsupported if function is None else int(function(*arguments))

    def reason(self, status: int) -> str:
        return self._reasons.get(status, f"status {status}")

    def ask(self, name: str, *arguments: Any) -> bool:
        """Whether the call went well; a failure that is worth telling is told."""
        status = self.call(name, *arguments)
        if status and status not in self._quiet:
            self._trouble.append(f"{name}: {self.reason(status)}")
        return status == 0

    def number(self, name: str, *arguments: Any, kind: Any = c_uint) -> int | None:
        """What a call wrote behind its last argument. All bits set mean that nobody knows."""
        value = kind()
        asked = self.ask(name, *arguments, byref(value))
        return int(value.value) if asked and value.value != (1 << 8 * sizeof(kind)) - 1 else None

    def text(self, name: str, *arguments: Any, size: Any = c_uint) -> str | None:
        """The same of a text; the call is told how much room there is. None for an empty one."""
        buffer = create_string_buffer(256)
        return decoded(buffer.value) or None if self.ask(name, *arguments, buffer, size(len(buffer))) else None

    def told(self) -> str | None:
        """What failed since this was last asked."""
        found, self._trouble = self._trouble, []
        return "; ".join(dict.fromkeys(found)) or None


class Busy:
    """How long each card was at work: its use at a sample, taken for the time since the one before."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, float]] = {}

    def add(self, uuid: str, utilization: float | None, now: float) -> float | None:
        """Seconds since the first sample; None where the use is not known, or no ratio."""
        at, busy = self._known.get(uuid, (now, 0.0))
        if utilization is None or not 0 <= utilization <= 1:
            self._known[uuid] = (now, busy)
            return None
        busy += utilization * (now - at)
        self._known[uuid] = (now, busy)
        return busy


def load(names: tuple[str, ...]) -> Any:
    """The first of the names that can be loaded: as the loader finds it, then where makers put it."""
    trouble = ""
    for name in (*names, *places(names)):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            trouble = trouble or str(error)
    raise LibraryError(f"cannot load {names[0]}: {trouble}")


def scaled(value: float | None, by: float) -> Any:
    return None if value is None else value * by


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace").strip()
