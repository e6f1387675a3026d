"""A door to the kernel's exit records: one netlink socket, and a thread that keeps it empty.

The kernel sends each record as its task ends and drops it if the socket is full. So the thread sleeps until one
comes, lets some more gather, takes them all, and sleeps again: a quiet machine costs nothing, a busy one a few
wakings a second. It never uses more than a small part of one core: what it then cannot take is dropped and counted.
"""

# The plain socket: what `socket` puts around it costs a megabyte of memory.
import _socket
import struct
import threading
import time
import weakref
from collections.abc import Callable

from jobsight.formats import taskstats
from jobsight.host import Host

AF_NETLINK, NETLINK_GENERIC = 16, 16
SOL_SOCKET, SOL_NETLINK = 1, 270
RCVBUFFORCE, MEMINFO = 33, 55
# Without it a full socket refuses everything until it was emptied, even what would have room again.
NO_ENOBUFS = 5

# Bytes of kernel memory that records may wait in, taken only while they do: some six thousand of them.
ROOM = 8 * 2**20
# Larger than any message: a record is some 600 bytes, and twice that for the last thread of a process.
LARGEST = 8192
MOST = 10_000
# Seconds: how long records gather, and how often a quiet thread looks whether it is still wanted.
GATHER, QUIET = 0.25, 10.0
# Of one core.
SHARE = 0.05

MONOTONIC_COARSE = 6

REQUEST, ACKNOWLEDGE = 1, 4
CONTROLLER, ASK_FAMILY, FAMILY_NAME = 16, 3, 2
ASK, REGISTER = 1, 3

Take = Callable[[Host, list[bytes], bool], None]
"""Is given records, and whether some before them were lost."""


def tick() -> int:
    """Microseconds between two ticks of this machine's clock: the coarse clocks move with it."""
    return round(time.clock_getres(MONOTONIC_COARSE) * taskstats.MICROSECONDS)


def request(kind: int, command: int, attribute: int, text: bytes) -> bytes:
    """A generic netlink request with one text attribute."""
    body = struct.pack("=BBH", command, 1, 0)
    body += struct.pack("=HH", 4 + len(text) + 1, attribute) + text + b"\0" * (4 - len(text) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST | ACKNOWLEDGE, 0, 0) + body


class Source:
    """Exit records of these CPUs, such as `0-63`. PermissionError without CAP_NET_ADMIN; another OSError where the
    kernel has none, or shows them only outside of this container.
    """

    def __init__(self, cpus: str, room: int = ROOM) -> None:
        self._early: list[bytes] = []
        self._socket = _socket.socket(AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, NETLINK_GENERIC)
        try:
            self._socket.bind((0, 0))
            self._socket.settimeout(QUIET)
            asked = self._ask(request(CONTROLLER, ASK_FAMILY, FAMILY_NAME, b"TASKSTATS"))
            self._family = taskstats.family(asked[0] if asked else b"")
            self._socket.setsockopt(SOL_NETLINK, NO_ENOBUFS, 1)
            # The kernel doubles what it is asked for.
            self._socket.setsockopt(SOL_SOCKET, RCVBUFFORCE, room // 2)
            # Records may come before the answer does.
            self._early = self._ask(request(self._family, ASK, REGISTER, cpus.encode("ascii")))
        except BaseException:
            self._socket.close()
            raise

    def _ask(self, message: bytes) -> list[bytes]:
        """What came until the request was answered."""
        self._socket.send(message)
        came = []
        while (number := taskstats.answer(received := self._socket.recv(LARGEST))) is None:
            came.append(received)
        if number:
            raise OSError(number, "the kernel refused exit records")
        return came

    def wait(self, seconds: float) -> bool:
        """Whether a record came in time."""
        self._socket.settimeout(seconds)
        try:
            self._early.append(self._socket.recv(LARGEST))
        except TimeoutError:
            return False
        return True

    def drain(self) -> list[bytes]:
        """All that are there now; the rest stays if they are too many for once."""
        found, self._early = self._early, []
        self._socket.setblocking(False)
        receive = self._socket.recv
        try:
            while len(found) < MOST:
                found.append(receive(LARGEST))
        except BlockingIOError:
            pass
        return found

    def lost(self) -> int:
        """Records the kernel dropped because the socket was full."""
        counts = self._socket.getsockopt(SOL_SOCKET, MEMINFO, 36)
        dropped: int = struct.unpack_from("=I", counts, 32)[0]
        return dropped

    def close(self) -> None:
        self._socket.close()


class Listener:
    """A thread that hands on the records of a host until that is let go, or until they turn out to say too little."""

    def __init__(self, host: Host, source: Source, take: Take) -> None:
        self.lock = threading.Lock()
        self.dropped = 0
        self.unfit = False
        # Weak: nobody tells a thread that its host was replaced by another.
        self._host = weakref.ref(host)
        self._source = source
        self._take = take
        self._thread = threading.Thread(target=self._listen, name="exits", daemon=True)
        self._thread.start()

    def listens(self) -> bool:
        return self._thread.is_alive()

    def _listen(self) -> None:
        pause, wanted = GATHER, True
        try:
            while wanted:
                if self._source.wait(QUIET):
                    time.sleep(pause)
                began = time.thread_time()
                wanted = self._hand_on()
                pause = max(GATHER, (time.thread_time() - began) * (1 - SHARE) / SHARE)
        finally:
            self._source.close()

    def _hand_on(self) -> bool:
        """Whether more are wanted."""
        messages, dropped = self._source.drain(), self._source.lost()
        host = self._host()
        if host is None:
            return False
        with self.lock:
            gap, self.dropped = dropped > self.dropped, dropped
            try:
                self._take(host, messages, gap)
            except taskstats.UnfitError:
                self.unfit = True
        return not self.unfit
