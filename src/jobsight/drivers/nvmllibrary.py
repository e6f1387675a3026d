"""NVIDIA's management library, by ctypes: its calls, and the structures they fill. Names are those of nvml.h."""

import ctypes
from ctypes import Structure, byref, c_char, c_double, c_int, c_uint, c_ulonglong, create_string_buffer
from typing import Any, ClassVar

LIBRARIES = ("libnvidia-ml.so.1", "libnvidia-ml.so")

UNSUPPORTED = 3
# What a card without the feature says: not supported, no permission, no data, a call this library does not know.
QUIET = frozenset({UNSUPPORTED, 4, 6, 13})
PERCENT = 0.01
MIB = 2**20


class Utilization(Structure):
    _fields_: ClassVar = [("gpu", c_uint), ("memory", c_uint)]


class Memory(Structure):
    _fields_: ClassVar = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class Pci(Structure):
    _fields_: ClassVar = [
        ("legacy", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint), ("id", c_uint),
        ("subsystem", c_uint), ("address", c_char * 32),
    ]  # fmt: skip


class Violation(Structure):
    _fields_: ClassVar = [("reference", c_ulonglong), ("time", c_ulonglong)]


class Value(ctypes.Union):
    _fields_: ClassVar = [("double", c_double), ("uint", c_uint), ("ulonglong", c_ulonglong)]


class Sample(Structure):
    _fields_: ClassVar = [("time", c_ulonglong), ("value", Value)]


class Field(Structure):
    _fields_: ClassVar = [
        ("id", c_uint), ("scope", c_uint), ("time", c_ulonglong), ("latency", c_ulonglong), ("type", c_int),
        ("status", c_int), ("value", Value),
    ]  # fmt: skip


class Running(Structure):
    _fields_: ClassVar = [("pid", c_uint), ("memory", c_ulonglong), ("instance", c_uint), ("compute", c_uint)]


class ProcessSample(Structure):
    _fields_: ClassVar = [
        ("pid", c_uint), ("time", c_ulonglong), ("sm", c_uint), ("memory", c_uint), ("encoder", c_uint),
        ("decoder", c_uint),
    ]  # fmt: skip


class NvmlError(RuntimeError):
    """The library cannot be used, and which call said so."""


class Library:
    """The library, loaded and initialised."""

    def __init__(self, names: tuple[str, ...] = LIBRARIES) -> None:
        self._library = load(names)
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self.trouble: list[str] = []
        if status := self.call("nvmlInit_v2"):
            raise NvmlError(f"nvmlInit_v2: {self.reason(status)}")

    def call(self, name: str, *arguments: Any) -> int:
        """A call's status; one that this release does not have is not supported."""
        function = getattr(self._library, name, None)
        return UNSUPPORTED if function is None else int(function(*arguments))

    def reason(self, status: int) -> str:
        text: bytes = self._library.nvmlErrorString(status) or b""
        return text.decode("utf-8", "backslashreplace") or f"status {status}"

    def ask(self, name: str, *arguments: Any) -> bool:
        """Whether the call went well; a failure that is worth telling is told."""
        status = self.call(name, *arguments)
        if status and status not in QUIET:
            self.trouble.append(f"{name}: {self.reason(status)}")
        return status == 0

    def number(self, name: str, *arguments: Any, kind: Any = c_uint) -> int | None:
        value = kind()
        return int(value.value) if self.ask(name, *arguments, byref(value)) else None

    def text(self, name: str, *arguments: Any) -> str | None:
        buffer = create_string_buffer(96)
        if not self.ask(name, *arguments, buffer, c_uint(len(buffer))):
            return None
        return buffer.value.decode("utf-8", "backslashreplace")

    def told(self) -> str | None:
        """What failed since this was last asked."""
        found, self.trouble = self.trouble, []
        return "; ".join(dict.fromkeys(found)) or None


def load(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            trouble = str(error)
    raise NvmlError(f"cannot load {names[0]}: {trouble}")
