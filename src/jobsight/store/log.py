"""The append log: a message is acknowledged when it is in here and synced.

Many requests share one fdatasync (group commit). Segments `00000012.log` hold frames of length, checksum and
payload; the loader takes whole segments and unlinks them when their rows are in the tables. After kill -9 a torn
last frame was never acknowledged and is passed over.
"""

import os
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress

from jobsight import files, frame

SUFFIX = ".log"
# One sync for everything that came in while the last one ran, and at least this long (seconds).
GROUP = 0.01


class Log:
    """The log of one store. Thread-safe; one thread writes."""

    def __init__(self, path: str, first: int) -> None:
        """`first` is above every number ever given to a segment: numbers are not used twice."""
        self._path = path
        files.make_directory(path)
        self._number = max([first - 1, *self._numbers()]) + 1
        self._fd = -1
        self._waiting: queue.Queue[tuple[bytes, Future[None]] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def append(self, payload: bytes) -> "Future[None]":
        """Done when the payload is on disk."""
        done: Future[None] = Future()
        self._waiting.put((payload, done))
        return done

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

    def set_aside(self, number: int) -> None:
        """Keep a segment that cannot be loaded, out of the way."""
        os.rename(self._file(number), self._file(number) + ".failed")

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
        except OSError:
            # A full disk must leave no half frame: frames after it would be lost to the reader. If it cannot even be
            # cut off, the next frame goes to another segment.
            with suppress(OSError):
                os.ftruncate(self._fd, before)
            os.close(self._fd)
            self._fd = -1
            self._number += 1
            raise

    def _numbers(self) -> list[int]:
        names = (name.removesuffix(SUFFIX) for name in os.listdir(self._path) if name.endswith(SUFFIX))
        return sorted(int(name) for name in names if name.isdecimal())

    def _file(self, number: int) -> str:
        return os.path.join(self._path, f"{number:08d}{SUFFIX}")
