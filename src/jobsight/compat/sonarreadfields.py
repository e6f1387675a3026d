"""The fields of a Sonar document, typed: a missing one is its default, as the format says; a wrong one is named."""

import math
from datetime import datetime
from typing import Any

# Within what a table's 64 bits hold, in bytes where the format counts KiB.
MOST = 2**52


class UnreadableError(ValueError):
    """A document that is not what the format says: where, and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Fields:
    """One object of a document."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise UnreadableError(path, f"expected an object, got {_kind(value)}")
        self._values = value
        self.path = path

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def whole(self, name: str) -> int:
        """A count; 0 if it is not there."""
        return _whole(self._values.get(name, 0), f"{self.path}.{name}")

    def real(self, name: str) -> float:
        value = self._values.get(name, 0)
        if value is None:
            return 0.0
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise UnreadableError(f"{self.path}.{name}", f"expected a number, got {_kind(value)}")
        if not 0 <= value <= MOST:
            raise UnreadableError(f"{self.path}.{name}", f"expected a number from 0 to 2^52, got {value}")
        return float(value)

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise UnreadableError(f"{self.path}.{name}", f"expected a text, got {_kind(value)}")
        return value.encode("utf-8", "replace").decode()

    def needed(self, name: str) -> str:
        """A text without which the document says nothing."""
        text = self.text(name)
        if not text:
            raise UnreadableError(f"{self.path}.{name}", "this field is needed")
        return text

    def flag(self, name: str) -> bool:
        return self._values.get(name) is True

    def time(self, name: str) -> float | None:
        """Seconds since 1970; None if it is missing or empty."""
        text = self.text(name)
        if not text:
            return None
        try:
            # RFC 3339 allows small letters.
            found = datetime.fromisoformat(text.upper())
            if found.tzinfo is None:
                raise UnreadableError(f"{self.path}.{name}", "a time without an offset")
            return found.timestamp()
        except (ValueError, OverflowError) as error:
            if isinstance(error, UnreadableError):
                raise
            raise UnreadableError(f"{self.path}.{name}", f"expected a time, got {text[:40]!r}") from None

    def within(self, name: str) -> "Fields":
        """An object; an empty one if it is not there."""
        value = self._values.get(name)
        return Fields({} if value is None else value, f"{self.path}.{name}")

    def objects(self, name: str) -> "list[Fields]":
        return [Fields(value, f"{self.path}.{name}[{i}]") for i, value in enumerate(self._list(name))]

    def wholes(self, name: str) -> list[int]:
        return [_whole(value, f"{self.path}.{name}[{i}]") for i, value in enumerate(self._list(name))]

    def rows(self, name: str) -> list[list[int]]:
        """A list of lists of counts."""
        lines = [Fields({"row": value}, f"{self.path}.{name}[{i}]") for i, value in enumerate(self._list(name))]
        return [line.wholes("row") for line in lines]

    def _list(self, name: str) -> list[Any]:
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise UnreadableError(f"{self.path}.{name}", f"expected a list, got {_kind(value)}")
        return value


def _whole(value: Any, path: str) -> int:
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableError(path, f"expected a whole number, got {_kind(value)}")
    if not 0 <= value <= MOST:
        raise UnreadableError(path, f"expected a number from 0 to 2^52, got {str(value)[:24]}")
    return value


def _kind(value: Any) -> str:
    """`object`, `list`, or the value itself, shortened."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value)[:40]
