"""Processes that sleep through many samples, and what may happen to them in their sleep.

A process of one thread that has not run has not changed a number of its own, and whether it has run is the kernel's
cheapest answer: `schedstat` costs a quarter of `stat`. Three things happen to a process without its running: its
memory is taken, its parent dies, or somebody moves it to another control group. The first two are watched here; for
the third, as for everybody, the roster looks at it anew when its turn comes.
"""

from jobsight.host import Host

# Samples without a move after which a process is left asleep, and for which nobody's memory must have been taken.
# To hold another file costs as much as four glances.
REST = 8
# Counters of /proc/vmstat that move when the kernel changes memory of those who sleep.
TAKING = (b"pgsteal", b"pswpout", b"thp_collapse")


class Sleepers:
    """Who sleeps, by parent; and whether the machine leaves them alone."""

    def __init__(self) -> None:
        self._calm = 0
        self._taken: list[bytes] = []
        self._under: dict[str, set[str]] = {}

    @property
    def safe(self) -> bool:
        """Whether one may be left asleep now."""
        return self._calm >= REST

    def begin(self, host: Host, gone: set[str]) -> set[str]:
        """Another sample; whom to wake: all if memory was taken, and the orphans of those who are gone."""
        try:
            taken = [line for line in host.read_bytes("proc/vmstat").split(b"\n") if line.startswith(TAKING)]
        except OSError:
            taken = []
        self._calm = self._calm + 1 if taken and taken == self._taken else 0
        self._taken = taken
        chosen = gone & self._under.keys() if self._calm else list(self._under)
        return {name for parent in chosen for name in self._under[parent]}

    def add(self, name: str, parent: str) -> None:
        self._under.setdefault(parent, set()).add(name)

    def drop(self, name: str, parent: str) -> None:
        """It is awake, or gone."""
        under = self._under.get(parent)
        if under is not None:
            under.discard(name)
            if not under:
                del self._under[parent]


def runs(text: bytes) -> bool:
    """Whether a schedstat line counts: all zero is that of a kernel that does not."""
    return not text.startswith(b"0 ") and len(text.split()) == 3
