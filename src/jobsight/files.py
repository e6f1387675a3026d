"""The agent's own files: append, replace, read back, lock. The only place where the node side writes."""

import fcntl
import os
from contextlib import suppress
from typing import Self

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def make_directory(path: str) -> None:
    os.makedirs(path, mode=0o750, exist_ok=True)


def append(path: str, data: bytes) -> None:
    """Add whole lines to a file. A write cut short by a full disk is taken back, so a file never ends in half a
    line of ours; OSError says that nothing was added.
    """
    fd = os.open(path, APPEND, 0o640)
    try:
        before = os.fstat(fd).st_size
        try:
            write_all(fd, data)
        except OSError:
            os.ftruncate(fd, before)
            raise
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """os.write may write less than it was given; this does not."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def replace(path: str, data: bytes) -> None:
    """Write a small file so that readers see the old one or the new one. After a power cut it may be empty."""
    beside = f"{path}.new"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    os.rename(beside, path)


def replace_secret(path: str, data: bytes, owner: tuple[int, int] | None = None) -> None:
    """As `replace`, for its owner alone, and there after a power cut: what it is worth cannot be had again. `owner`
    is a user and a group, where it is to be somebody else's.
    """
    beside = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(beside)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if owner is not None:
            os.fchown(fd, *owner)
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(beside, path)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_at(path: str, start: int, size: int) -> bytes:
    """A piece of a file of ours; nothing if it is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, size, start)
    finally:
        os.close(fd)


class LockedError(RuntimeError):
    """Somebody else holds the lock."""


class Lock:
    """A lock file: held as long as the process lives, however it dies."""

    def __init__(self, path: str) -> None:
        make_directory(os.path.dirname(path) or ".")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip() or "another process"
            os.close(self._fd)
            raise LockedError(f"{path} is held by process {holder}") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
