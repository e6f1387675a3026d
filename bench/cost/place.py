"""A folder for one run of the bench, and the settings of the agents that work in it."""

import json
import os
from typing import Any, NamedTuple

from jobsight import catalogue


class Place(NamedTuple):
    """Where agents write and where they send."""

    folder: str
    url: str

    def settings(self, sink: str, every: float, *, alone: bool) -> str:
        """A settings file: the process collector `alone`, or beside all others as on a real node."""
        own = os.path.join(self.folder, f"{sink}-{'alone' if alone else 'all'}")
        os.makedirs(own, exist_ok=True)
        values: dict[str, Any] = {
            "sinks": [{"directory": {"path": self.output}} if sink == "directory" else {"http": self._http()}],
            "collect": {name: {"enabled": not alone} for name in catalogue.collector_names()},
            "spool": {"path": f"{own}/spool"},
            "lock": f"{own}/lock",
        }
        values["collect"]["process"] = {"every": every, "deadline": 60}
        # JSON is YAML.
        with open(f"{own}/settings.yaml", "w") as file:
            json.dump(values, file)
        return file.name

    @property
    def output(self) -> str:
        return os.path.join(self.folder, "output")

    def _http(self) -> dict[str, Any]:
        return {"url": self.url, "window": 0}

    def lines(self) -> list[bytes]:
        """The messages of the process collector in the output, oldest first."""
        found = []
        for folder, _, names in sorted(os.walk(self.output)):
            for name in sorted(names):
                if name.startswith("process-"):
                    with open(os.path.join(folder, name), "rb") as file:
                        found += file.readlines()
        return found
