"""A Lustre target's life with known truth, as messages: entries come, work, rest, go and come back."""

import json
import random
from typing import Any

from jobsight.schema.wire import instant

# A whole hour, so that steps are easily counted.
START = 1794700800.0
EVERY = 120.0
OPERATIONS = {"ost": ("read", "write", "read_bytes", "write_bytes"), "mdt": ("open", "close", "getattr")}
AMOUNT = {"read_bytes": 2**20, "write_bytes": 2**22}


def message(collector: str, time: float, rows: list[dict[str, Any]], node: str = "oss1") -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    said = {
        "schema": 1, "cluster": "fox", "node": node, "boot": "b1", "collector": collector, "time": instant(time),
        "uptime": time - START + 1e5, "every": EVERY, "status": "ok", "seconds": 0.1, "rows": columns,
    }  # fmt: skip
    return json.dumps(said).encode()


def row(target: str, entry: str, **said: Any) -> dict[str, Any]:
    """An entry `JOB:UID:HOST`; what is not so is malformed."""
    parts = entry.split(":")
    good = len(parts) == 3 and all(parts[1:])
    job, uid, host = (parts[0] or None, int(parts[1]), parts[2]) if good else (None, None, None)
    plain = {"job": job, "uid": uid, "host": host, "format": "%j:%u:%H" if good else "malformed", "truncated": False}
    return {"target": target, "entry": entry} | plain | said


def scan(target: str, kind: str, time: float, **said: Any) -> dict[str, Any]:
    return {"target": target, "kind": kind, "source": "files", "scanned_at": time, "ok": True, "entries": 1,
            "cleanup_interval": 600.0} | said  # fmt: skip


class Entry:
    """One life of an entry."""

    def __init__(self, began: float, absent: float | None, operations: tuple[str, ...]) -> None:
        self.counters: dict[str, int] = dict.fromkeys(operations, 0)
        self.began, self.absent = began, absent
        self.told: dict[str, int] | None = None


class History:
    """Some targets over some hours. `done` is the work of entries that could be seen from their first operation."""

    def __init__(self, seed: int, entries: list[str], hours: float = 1.0, *, starts: bool = True) -> None:
        self._chance = random.Random(seed)
        self._entries, self._starts = entries, starts
        self.done: dict[tuple[str, str, str], int] = {}
        self.lines: list[bytes] = []
        targets = (("scratch-OST0000", "ost"), ("scratch-OST0001", "ost"), ("scratch-MDT0000", "mdt"))
        live: dict[tuple[str, str], Entry] = {}
        self.scans = int(hours * 3600 / EVERY)
        for number in range(1, self.scans + 1):
            time = START + number * EVERY
            for target, kind in targets:
                self._work(live, target, kind, time, first=number == 1)
            self._tell(live, targets, time, lost=1 < number < self.scans and self._chance.random() < 0.1)

    def _work(self, live: dict[tuple[str, str], Entry], target: str, kind: str, time: float, *, first: bool) -> None:
        for name in self._entries:
            key = (target, name)
            if key in live and self._chance.random() < 0.1:
                # Everything it did was told: the kernel keeps it for five scans more.
                if live[key].told == live[key].counters:
                    del live[key]
                continue
            if self._chance.random() < 0.4:
                continue
            if key not in live:
                live[key] = Entry(time - 60, None if first else time - EVERY, OPERATIONS[kind])
            for operation in OPERATIONS[kind]:
                amount = self._chance.randint(0, 50) * AMOUNT.get(operation, 1)
                live[key].counters[operation] += amount
                if not first:
                    self.done[target, name, operation] = self.done.get((target, name, operation), 0) + amount

    def _tell(self, live: dict[tuple[str, str], Entry], targets: Any, time: float, *, lost: bool) -> None:
        if lost:
            return
        for kind in OPERATIONS:
            rows = []
            for target, of in targets:
                for (place, name), entry in live.items() if of == kind else ():
                    if place == target and entry.told != entry.counters:
                        entry.told = dict(entry.counters)
                        said = {"start_time": entry.began if self._starts else None, "absent_at": entry.absent}
                        rows.append(row(target, name, **said, **entry.counters))
            if rows:
                self.lines.append(message(f"lustre{kind}", time, rows, f"{kind}server"))
        self.lines.append(message("lustrescan", time + 0.25, [scan(t, kind, time) for t, kind in targets]))
