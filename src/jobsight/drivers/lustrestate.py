"""The memory of all targets of a kind, and the small file in which it outlives the agent.

A file that is torn, of another form or too large is no file: the next scan is then a first one.
"""

import json
from contextlib import suppress

from jobsight.drivers.lustrememory import Moment, Past, from_state
from jobsight.files import make_directory, read_at, replace

FORM = 1
# Some 400 000 entries.
LARGEST = 32 * 2**20
# Seconds after which a target that went to another server is forgotten.
LONG_GONE = 86400.0


class State:
    """What was there, by target."""

    def __init__(self) -> None:
        self.targets: dict[str, Past] = {}
        self.saved = float("-inf")
        """When it was last written down, by the steady clock."""

    def target(self, name: str) -> Past:
        return self.targets.setdefault(name, Past())

    def leave(self, listed: set[str], now: Moment) -> None:
        """Those that are here are `listed`; if none is, nobody knows whether the list could be read."""
        if not listed:
            return
        for name in [name for name in self.targets if name not in listed]:
            past = self.targets[name]
            if past.entries:
                past.leave(now)
            elif past.scanned is None or now.steady - past.scanned.steady > LONG_GONE:
                del self.targets[name]


def load(path: str, boot: str, now: Moment, uptime: float) -> State:
    """What an earlier agent wrote; nothing if it wrote nothing that reads."""
    state = State()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        found = json.loads(read_at(path, 0, LARGEST), parse_constant=_no_number)
        if found["form"] == FORM:
            booted = now.wall - uptime if found["boot"] != boot else None
            state.targets = {name: from_state(one, now, booted) for name, one in found["targets"].items()}
    return state


def save(state: State, path: str, boot: str, now: Moment) -> None:
    """Write it down. A target is written whole or not at all: of one without its entries all would look new."""
    room = LARGEST - 4096
    parts: list[str] = []
    for name, past in state.targets.items():
        part = f"{json.dumps(name)}:{past.to_state(now)}"
        if len(part) + 1 <= room:
            parts.append(part)
            room -= len(part) + 1
    text = f'{{"form":{FORM},"boot":{json.dumps(boot)},"targets":{{{",".join(parts)}}}}}\n'
    # A disk that is full costs a restarted agent its memory, and this scan nothing.
    with suppress(OSError):
        make_directory(path.rpartition("/")[0])
        replace(path, text.encode("ascii"))


def _no_number(word: str) -> float:
    raise ValueError(f"expected a number, got {word}")
