"""A Lustre server in memory: simulated targets, the text they print, the agent's collectors, and a clock to turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobsight import catalogue
from jobsight.agent.run import run
from jobsight.drivers.lustre import Lustre
from jobsight.drivers.lustreoptions import Options
from jobsight.drivers.notebook import Notebook
from jobsight.host import Host
from jobsight.schema.message import Message, Origin
from jobsight.simulate.lustretarget import Target
from jobsight.simulate.lustretext import DIALECTS, FOLDERS, render

BEGIN = 1_767_571_200.0
EVERY = 120.0
PROC = "proc/fs/lustre"


class Hands:
    """Both clocks. Setting the wall clock does not move the other."""

    def __init__(self, now: float = BEGIN) -> None:
        self.passed = 0.0
        self.shift = now

    def wall(self) -> float:
        return self.passed + self.shift

    def steady(self) -> float:
        return self.passed + 1000.0

    def uptime(self) -> float:
        return self.passed + 500.0


class Server(Host):
    """Reading a target is reading the model of it: it sweeps when the file is closed."""

    def __init__(self, hands: Hands, folder: Path, dialect: str = "2.16", boot: str = "boot1") -> None:
        super().__init__(str(folder / "nothing"))
        self.hands = hands
        self.dialect = DIALECTS[dialect]
        self.targets: dict[str, Target] = {}
        self.skip: dict[str, int] = {}
        self.broken: dict[str, Exception] = {}
        self.cut: dict[str, int] = {}
        """How many bytes are missing at the end."""
        self.boot_name = boot
        self.booted = 0.0
        self.keep(Notebook).folder = str(folder)
        self.keep(Lustre).clock = hands

    def mount(self, *targets: Target) -> None:
        self.targets.update({target.name: target for target in targets})

    def names(self, path: str) -> list[str]:
        return [name for name, one in self.targets.items() if path == f"{PROC}/{FOLDERS[one.kind]}"]

    def exists(self, path: str) -> bool:
        kinds = {FOLDERS[one.kind] for one in self.targets.values()}
        return path in {f"{PROC}/{kind}" for kind in kinds} or path.endswith("/job_stats")

    def glimpse(self, path: str, column: str = "") -> str | None:  # noqa: ARG002
        if path.startswith(PROC) and path.endswith("job_cleanup_interval"):
            return f"{self.targets[path.split('/')[-2]].interval:.0f}\n"
        return None

    def pieces(self, path: str, size: int = 4096) -> Iterator[bytes]:
        target = self.targets[path.split("/")[-2]]
        if target.name in self.broken:
            raise self.broken[target.name]
        seen = target.read(self.hands.wall(), self.skip.get(target.name))
        text = render(seen, target.kind, self.dialect, self.hands.shift + self.booted)
        text = text[: len(text) - self.cut.get(target.name, 0)]
        for at in range(0, len(text), size):
            yield text[at : at + size]

    def boot(self) -> str:
        return self.boot_name

    def uptime(self) -> float:
        return self.hands.uptime() - self.booted


def scan(server: Server, collector: str = "lustreost", **options: Any) -> Message:
    """One run of a collector; BaseException would be the agent's."""
    found = catalogue.collector(collector)
    chosen = Options(**options) if options else None
    return run(found, chosen, server, Origin("fox", "oss1", server.boot_name), server.hands, EVERY)


def rows(message: Message) -> list[dict[str, Any]]:
    """The rows of a message, one dictionary each."""
    names = list(message.rows)
    return [dict(zip(names, values, strict=True)) for values in zip(*message.rows.values(), strict=True)]


def told(message: Message) -> dict[str, dict[str, Any]]:
    """The rows of a message, by identifier."""
    return {row["entry"]: row for row in rows(message)}
