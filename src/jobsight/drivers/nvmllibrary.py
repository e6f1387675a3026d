"""NVIDIA's management library, by ctypes: its calls, and the structures they fill. Names are those of nvml.h."""

import ctypes
from ctypes import Structure, c_char, c_double, c_int, c_uint, c_ulonglong
from typing import ClassVar

from jobsight.drivers.library import Library as Loaded
from jobsight.drivers.library import LibraryError, decoded

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


NvmlError = LibraryError


class Library(Loaded):
    """NVIDIA's library, loaded and initialised. It has words for its own errors."""

    def __init__(self, names: tuple[str, ...] = LIBRARIES) -> None:
        super().__init__(names, UNSUPPORTED, QUIET, {})
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self.begin("nvmlInit_v2")

    def reason(self, status: int) -> str:
        text: bytes = self._library.nvmlErrorString(status) or b""
        return decoded(text) or super().reason(status)
