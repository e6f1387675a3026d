"""Where the command line finds the server that owns a store, how it knows it, and what it shows to send to it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from jobsight import files
from jobsight.ship.post import Tls, context
from jobsight.show.peer import Way

FILE = "server.json"
# A token of this server and its life: its own programs send with it. For its owner's eyes alone.
TOKEN = "server.token"  # noqa: S105


class Notice(NamedTuple):
    """A running server."""

    url: str
    pid: int
    certificate: str | None = None
    """What it shows over TLS, as PEM. It names the machine as others know it, not the loopback address."""
    socket: str | None = None
    """Where it knows who asks: see `show.peer`."""

    def tls(self) -> Tls:
        return Tls(pinned=self.certificate)

    def opener(self) -> Callable[..., Any]:
        """Opens addresses of this server."""
        # A cluster's proxy has no business between us and our own machine.
        ways: list[Any] = [ProxyHandler({})]
        if self.socket:
            ways.append(Way(self.socket))
        elif self.certificate:
            ways.append(HTTPSHandler(context=context(self.tls())))
        return build_opener(*ways).open


@contextmanager
def posted(path: str, notice: Notice, token: str) -> Iterator[None]:
    """While this lasts the command line finds the server."""
    files.replace_secret(os.path.join(path, TOKEN), token.encode())
    files.replace(os.path.join(path, FILE), json.dumps(notice._asdict()).encode())
    if notice.socket:
        # Nothing in it is secret, and whoever may pass through to the socket must find it.
        os.chmod(os.path.join(path, FILE), 0o644)
    try:
        yield
    finally:
        for name in (FILE, TOKEN):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(path, name))


def read(path: str) -> Notice | None:
    """Of the server that has the store in `path` open; None if none says so."""
    text = b""
    with suppress(PermissionError):
        text = files.read_at(os.path.join(path, FILE), 0, 65536)
    if not text:
        return None
    try:
        said = json.loads(text)
        return Notice(**{name: said[name] for name in Notice._fields if name in said})
    except (ValueError, TypeError):
        # A power cut may leave anything of a file that was being written.
        return None


def token(path: str) -> str:
    """What to show that server; nothing if we may not know."""
    with suppress(PermissionError):
        return files.read_at(os.path.join(path, TOKEN), 0, 4096).decode("ascii", "replace").strip()
    return ""
