"""The append log: a message is acknowledged when it is in here and synced.

Many requests share one fdatasync (group commit). Segments `00000012.log` hold frames of length, checksum and
payload; the loader takes whole segments and unlinks them when their rows are in the tables. After kill -9 a torn
last frame was never acknowledged and is passed over.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from jobsight import files, frame
from jobsight.formats.number import volume
from jobsight.ingest.limit import BusyError
from jobsight.store.protocol import MOST_WAITING, Backlog

SUFFIX = ".log"
# A segment is not made longer than this (bytes): the loader has one in memory, as Python's objects.
SEGMENT = 4 * 2**20
# One sync for everything that came in while the last one ran, and at least this long (seconds).
GROUP = 0.01


class Waiting(NamedTuple):
    """A segment that waits to be loaded."""

    size: int
    since: float


class Log:
    """The log of one store. Thread-safe; one thread writes."""

    def __init__(
        self, path: str, first: int, most: int = MOST_WAITING, clock: Callable[[], float] = time.time
    ) -> None:
        """`first` is above every number ever given to a segment: numbers are not used twice. With `most` bytes
        waiting no more is taken.
        """
        self._path = path
        self._most = most
        self._clock = clock
        files.make_directory(path)
        self._number = max([first - 1, *self._numbers()]) + 1
        self._counting = threading.Lock()
        self._segments = {number: self._found(number) for number in self._numbers()}
        self._size = sum(segment.size for segment in self._segments.values())
        self._fd = -1
        self._waiting: queue.Queue[tuple[bytes, Future[None]] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def append(self, payload: bytes) -> "Future[None]":
        """Done when the payload is on disk; BusyError if too much waits."""
        done: Future[None] = Future()
        with self._counting:
            if self._size >= self._most:
                done.set_exception(BusyError(f"{volume(self._size)} wait to be digested: as much as may"))
                return done
            self._size += frame.HEAD.size + len(payload)
        self._waiting.put((payload, done))
        return done

    def backlog(self) -> Backlog:
        with self._counting:
            since = min((segment.since for segment in self._segments.values()), default=None)
            return Backlog(self._size, self._most, None if since is None else max(0.0, self._clock() - since))

    def finished(self) -> list[int]:
        """Close the segment being written and list all that can be loaded, oldest first."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
                self._number += 1
            return self._numbers()

    def payloads(self, number: int) -> list[bytes]:
        """The whole frames of one segment."""
        data = files.read_at(self._file(number), 0, os.path.getsize(self._file(number)))
        return [payload for payload, _ in frame.unpack(data)]

    def remove(self, number: int) -> None:
        os.unlink(self._file(number))
        self._forget(number)

    def set_aside(self, number: int) -> None:
        """Keep a segment that cannot be loaded, out of the way."""
        os.rename(self._file(number), self._file(number) + ".failed")
        self._forget(number)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()
        self.finished()

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            group = [first]
            time.sleep(GROUP)
            last = False
            while not self._waiting.empty():
                item = self._waiting.get()
                if item is None:
                    last = True
                    break
                group.append(item)
            self._commit(group)
            if last:
                return

    def _commit(self, group: "list[tuple[bytes, Future[None]]]") -> None:
        # A request that was broken off waits no more; what it brought is written all the same.
        waiting = [done for _, done in group if done.set_running_or_notify_cancel()]
        data = b"".join(frame.pack(payload) for payload, _ in group)
        try:
            with self._lock:
                self._append(data)
        except OSError as error:
            with self._counting:
                self._size -= len(data)
            for done in waiting:
                done.set_exception(OSError(error.errno, error.strerror))
            return
        for done in waiting:
            done.set_result(None)

    def _append(self, data: bytes) -> None:
        if self._fd < 0:
            self._fd = os.open(self._file(self._number), files.APPEND, 0o640)
            # The name must survive a power cut too.
            folder = os.open(self._path, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        before = os.fstat(self._fd).st_size
        try:
            files.write_all(self._fd, data)
            os.fdatasync(self._fd)
            with self._counting:
                since = self._segments[self._number].since if before else self._clock()
                self._segments[self._number] = Waiting(before + len(data), since)
        except OSError:
            # A full disk must leave no half frame: frames after it would be lost to the reader. If it cannot even be
            # cut off, the next frame goes to another segment.
            with suppress(OSError):
                os.ftruncate(self._fd, before)
            os.close(self._fd)
            self._fd = -1
            self._number += 1
            raise
        if before + len(data) >= SEGMENT:
            os.close(self._fd)
            self._fd = -1
            self._number += 1

    def _found(self, number: int) -> Waiting:
        """A segment from an earlier life."""
        found = os.stat(self._file(number))
        return Waiting(found.st_size, found.st_mtime)

    def _forget(self, number: int) -> None:
        with self._counting:
            if segment := self._segments.pop(number, None):
                self._size -= segment.size

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(SUFFIX) for name in os.listdir(self._path) if name.endswith(SUFFIX))
        return sorted(int(name) for name in names if name.isdecimal())

    def _file(self, number: int) -> str:
        return os.path.join(self._path, f"{number:08d}{SUFFIX}")
