"""What every part of the bench needs: where to work, with what, on which core."""

import os
from typing import NamedTuple

from bench.cost.exporter import ALL_BY_NAME
from bench.cost.interpreter import Interpreter
from bench.cost.place import Place
from bench.cost.program import Program, pinned

HERE = os.path.dirname(os.path.abspath(__file__))


class Kit(NamedTuple):
    folder: str
    pythons: tuple[Interpreter, ...]
    """The first takes part in the contests; memory and single runs are measured with all of them."""
    farm: str
    standin: str | None
    process_exporter: str | None
    node_exporter: str | None
    rounds: int
    samples: int
    cpu: int

    def place(self, name: str) -> Place:
        return Place(self.folder, name)

    def agent(self, settings: str, kind: str = "agent") -> Program:
        """A sampler in the first interpreter."""
        python = self.pythons[0]
        command = (python.path, os.path.join(HERE, "sampler.py"), kind, settings)
        return Program(*pinned(self.cpu, command), environment=python.environment)

    def rival(self, *command: str) -> Program:
        return Program(*pinned(self.cpu, command))

    def by_name(self) -> str:
        """The options that make the process exporter show every process."""
        path = os.path.join(self.folder, "names.yaml")
        with open(path, "w") as file:
            file.write(ALL_BY_NAME)
        return f"--config.path={path}"
