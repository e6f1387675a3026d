"""The folder of the files: what is in it, and how a file gets a name there that survives a power cut."""

import os
from collections.abc import Iterator

from jobsight.store.hot import NAME
from jobsight.store.protocol import StoreError

SUFFIX = ".parquet"
UNFINISHED = ".new"
# Rows that are written and passed over together: twice the engine's own number, because to look at what is said of
# each such group costs more than to read one that is twice as large. Of messages there are fewer, and of those one
# job needs a handful.
GROUP = 245_760
GROUPS = {"run": 40_960}


def form(table: str) -> str:
    """How a table's rows are written, in SQL."""
    return f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {GROUPS.get(table, GROUP)}"


def check(path: str) -> None:
    """Refuse files without the catalogue that names them, before an empty one is made: they would be taken for
    leftovers.
    """
    below = os.path.join(path, "cold")
    if not os.path.exists(os.path.join(path, NAME)) and any(file.endswith(SUFFIX) for file in present(below)):
        raise StoreError(
            f"{below} holds rows, but {NAME} is gone that goes with them: put it back, or move both away"
        )


def present(path: str) -> Iterator[str]:
    """Every file below a folder, catalogued or not."""
    for folder, _, files in os.walk(path):
        for file in files:
            if file.removesuffix(UNFINISHED).endswith(SUFFIX):
                yield os.path.relpath(os.path.join(folder, file), path)


def settle(unfinished: str, path: str) -> None:
    """Sync a file and give it its name, so that it survives a power cut."""
    sync(unfinished)
    os.rename(unfinished, path)
    sync(os.path.dirname(path))


def make(path: str, above: str) -> None:
    """A folder below `above`, whose names on the way survive a power cut."""
    os.makedirs(path, mode=0o750, exist_ok=True)
    while len(path) >= len(above):
        path = os.path.dirname(path)
        sync(path)


def sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
