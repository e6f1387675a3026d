"""A folder for one run of the bench, and the settings of the agents that work in it."""

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from jobsight.collect.process import Options
from jobsight.settings import from_values

# What the shipped settings leave out: kernel threads are left out always, and these are the system's own users.
SYSTEM_USERS = ["0-999"]
# Not about the node as a whole.
OWN = ("process", "cgroup", "agent")
# Nor are these, which look at jobs and at processes that have ended.
OF_JOBS = ("allocation", "exited")


def can_exclude_uids() -> bool:
    return "exclude_uids" in Options._fields


def collectors() -> list[str]:
    """Those that are on where the settings say nothing."""
    return [plan.name for plan in from_values({}).collect if plan.enabled]


def node_collectors() -> list[str]:
    return [name for name in collectors() if name not in OWN]


class Place(NamedTuple):
    """Where one agent writes and where it sends."""

    folder: str
    name: str

    @property
    def own(self) -> str:
        return os.path.join(self.folder, self.name)

    @property
    def output(self) -> str:
        return os.path.join(self.own, "output")

    def settings(self, names: Iterable[str], every: float, *, jobs_only: bool = False, url: str = "") -> str:
        """A settings file with the named collectors on; to a directory, or to `url`."""
        os.makedirs(self.own, exist_ok=True)
        wanted = set(names)
        collect: dict[str, Any] = {
            plan.name: {"enabled": plan.name in wanted, "every": every, "deadline": 60}
            for plan in from_values({}).collect
        }
        if jobs_only:
            collect["process"]["exclude_uids"] = SYSTEM_USERS
        sink = {"http": {"url": url, "window": 0}} if url else {"directory": {"path": self.output}}
        values = {
            "sinks": [sink],
            "collect": collect,
            "spool": {"path": f"{self.own}/spool"},
            "lock": f"{self.own}/lock",
        }
        # JSON is YAML.
        with open(f"{self.own}/settings.yaml", "w") as file:
            json.dump(values, file)
        return file.name

    def files(self) -> list[str]:
        """What the directory sink has written, by name."""
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.output) for name in names]
        return sorted(found)

    def last(self, collector: str) -> bytes:
        """The newest message of a collector; a run over midnight has two files."""
        path = [path for path in self.files() if os.path.basename(path).startswith(f"{collector}-")][-1]
        with open(path, "rb") as file:
            return file.readlines()[-1]
