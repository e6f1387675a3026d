"""Where refused messages go: a file a day, with path and reason, bounded, never silently lost."""

import base64
import json
import os
import sys
import threading
import time

from jobsight import files
from jobsight.ingest.accept import Refused
from jobsight.schema.wire import instant

BOUND = 64 * 2**20
LONGEST = 2**20


class Quarantine:
    """The refused messages of one server."""

    def __init__(self, path: str, bound: int = BOUND) -> None:
        self._path = path
        self._bound = bound
        self._lock = threading.Lock()
        self.count = 0
        self.discarded = 0
        files.make_directory(path)

    def keep(self, refused: list[Refused]) -> None:
        """Write them down; the oldest days go when there are too many."""
        now = time.time()
        lines = b"".join(self._line(item, now) for item in refused)
        with self._lock:
            self.count += len(refused)
            if self._room(len(lines)):
                files.append(os.path.join(self._path, time.strftime("%Y-%m-%d.jsonl", time.gmtime(now))), lines)
            else:
                if not self.discarded:
                    print("jobsight: the quarantine is full; refused messages are only counted", file=sys.stderr)
                self.discarded += len(refused)

    def _line(self, item: Refused, now: float) -> bytes:
        entry: dict[str, str] = {"time": instant(now), "path": item.path, "reason": item.reason}
        try:
            entry["message"] = item.line[:LONGEST].decode()
        except UnicodeDecodeError:
            entry["base64"] = base64.b64encode(item.line[:LONGEST]).decode()
        return json.dumps(entry).encode() + b"\n"

    def _room(self, size: int) -> bool:
        """Make room by forgetting earlier days; a single day that fills the bound is counted on, not kept."""
        held = sorted(os.scandir(self._path), key=lambda entry: entry.name)
        total = size + sum(entry.stat().st_size for entry in held)
        while total > self._bound and len(held) > 1:
            total -= held[0].stat().st_size
            os.unlink(held.pop(0).path)
        return total <= self._bound
