"""A socket beside the store, on which the kernel says who calls: programs on this machine need no password.

Its path may be longer than an address of a socket can be, so it is reached through the open directory.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.request import AbstractHTTPHandler, Request

FILE = "server.sock"


class Caller(NamedTuple):
    """A process on this machine, as the kernel knew it when it connected."""

    uid: int
    gid: int


@contextmanager
def _address(path: str) -> Iterator[str]:
    folder = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


@contextmanager
def listening(path: str) -> Iterator[socket.socket]:
    """A socket for everybody; who holds the store may replace one that was left behind."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(path) as address:
            with suppress(FileNotFoundError):
                os.unlink(address)
            link.bind(address)
            os.chmod(address, 0o666)  # noqa: S103
        link.listen(128)
        yield link
    finally:
        link.close()
        with suppress(OSError):
            os.unlink(path)


def seclude(folder: str) -> None:
    """Others may pass through to the socket and read nothing: no file beside it, and none made from now on."""
    os.umask(0o077)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, 0o700)
        elif entry.is_file(follow_symlinks=False):
            os.chmod(entry.path, 0o600)
    os.chmod(folder, 0o711)  # noqa: S103


def knowing(protocol: type[Any]) -> type[Any]:
    """The same protocol; what it hands on says who calls. Nothing in a request can say it in its place."""

    class Knowing(protocol):  # type: ignore[misc]
        app_state: dict[str, Any]

        def connection_made(self, transport: asyncio.Transport) -> None:
            link = transport.get_extra_info("socket")
            _, uid, gid = struct.unpack("iII", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.app_state = {**self.app_state, "caller": Caller(uid, gid)}
            super().connection_made(transport)

    return Knowing


class Connection(HTTPConnection):
    """HTTP through the socket."""

    def __init__(self, path: str, host: str, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # `urllib` hands over an object of its own where none was given.
        self.sock.settimeout(self.timeout if isinstance(self.timeout, int | float) else None)
        with _address(self._path) as address:
            self.sock.connect(address)


class Way(AbstractHTTPHandler):
    """For `urllib`: whatever the address says, through the socket."""

    handler_order = 100

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def http_open(self, request: Request) -> Any:
        return self.do_open(self._connection, request)  # type: ignore[arg-type]

    https_open = http_open
    http_request = https_request = AbstractHTTPHandler.do_request_

    def _connection(self, host: str, /, timeout: float = 30.0) -> Connection:
        return Connection(self._path, host, timeout)
