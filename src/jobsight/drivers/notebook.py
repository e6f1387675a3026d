"""How far a collector has read a source that has a past: one small file each, so that a restarted agent goes on.

A one-off run (`jobsight sample`) has no folder: it looks at the last hour and must not tell the agent that the rest
was sent.
"""

import json
from contextlib import suppress
from typing import Any

from jobsight.files import make_directory, read_at, replace

# The year 2200: what is beyond is no time.
FURTHEST = 7.3e9


class Notebook:
    """Lives with a host. `folder` is set by the agent."""

    def __init__(self) -> None:
        self.folder: str | None = None

    def until(self, name: str) -> float | None:
        """Until when the source was read; None if nobody wrote it down, or what is there is no time."""
        if self.folder is None:
            return None
        found: Any = None
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads(read_at(self._path(name), 0, 4096))["until"]
        return float(found) if type(found) in (int, float) and 0 < found < FURTHEST else None

    def write(self, name: str, until: float) -> None:
        if self.folder is not None:
            make_directory(self.folder)
            replace(self._path(name), json.dumps({"until": until}).encode())

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}.json"
