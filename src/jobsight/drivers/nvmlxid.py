"""The driver's own reports of trouble with a card, by number (XID): the library tells them as events."""

from ctypes import Structure, byref, c_uint, c_ulonglong, c_void_p
from typing import ClassVar

from jobsight.drivers.nvmllibrary import Library

CRITICAL = 8
# Of one look; more would be a storm.
MOST = 64


class Event(Structure):
    _fields_: ClassVar = [
        ("card", c_void_p), ("kind", c_ulonglong), ("number", c_ulonglong), ("instance", c_uint), ("compute", c_uint),
    ]  # fmt: skip


class Xids:
    """The last report of each card since we began to listen."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._last: dict[int | None, int] = {}
        self._heard: set[int | None] = set()
        self._events = c_void_p()
        self._listens = not library.call("nvmlEventSetCreate", byref(self._events))

    def of(self, card: c_void_p) -> int | None:
        """The last one of this card; None if there was none, or nobody tells."""
        if not self._listens:
            return None
        if card.value not in self._heard:
            self._heard.add(card.value)
            self._library.call("nvmlDeviceRegisterEvents", card, c_ulonglong(CRITICAL), self._events)
        event = Event()
        for _ in range(MOST):
            if self._library.call("nvmlEventSetWait_v2", self._events, byref(event), c_uint(0)):
                break
            self._last[event.card] = int(event.number)
        return self._last.get(card.value)
