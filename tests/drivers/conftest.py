"""Makers' libraries for the tests, compiled from our own C."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The path of the library made from `NAME.c`."""
    made: dict[str, str] = {}

    def compile_once(name: str) -> str:
        if name not in made:
            path = tmp_path_factory.mktemp(name) / f"lib{name}.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", path, HERE / f"{name}.c"], check=True)
            made[name] = str(path)
        return made[name]

    return compile_once
