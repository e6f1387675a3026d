"""The Python that runs the agent: it need not be the one that runs the bench."""

import os
import shutil
import subprocess
from typing import NamedTuple

import yaml

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src")

ASK = """
import platform
print(platform.python_version())
try:
    import yaml
    print(yaml.__file__)
except ImportError:
    print()
"""


class Interpreter(NamedTuple):
    """A program, and where it finds the package and PyYAML."""

    path: str
    places: tuple[str, ...]
    version: str
    home: str
    yaml: str
    """PyYAML's own file."""

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": ":".join(self.places), "JOBSIGHT_HOME": self.home}

    def __str__(self) -> str:
        return f"{self.path} ({self.version})"


def interpreter(path: str, folder: str) -> Interpreter:
    """Ready to run a copy of the package that is compiled, as an installed one is: who compiles first is larger and
    slower. Where it has no PyYAML of its own it borrows the bench's.
    """
    asked = subprocess.run((path, "-c", ASK), capture_output=True, text=True, check=False)
    if asked.returncode:
        raise SystemExit(f"{path}: {asked.stderr.strip() or 'does not run'}")
    version, found = asked.stdout.split("\n")[:2]
    borrowed = () if found else (os.path.dirname(os.path.dirname(yaml.__file__)),)
    copy = os.path.join(folder, "package")
    if not os.path.exists(copy):
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run((path, "-m", "compileall", "-q", copy), check=True)
    return Interpreter(path, (copy, *borrowed), version, os.path.join(folder, "home"), found or yaml.__file__)
