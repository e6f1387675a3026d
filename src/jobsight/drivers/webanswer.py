"""What an address on the web answers: within a time and a size, by the proxy that the environment names.

Loaded by the one agent that is told to ask, not by every node: the standard library's client takes some megabytes.
"""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib import request
from urllib.error import HTTPError

# Larger than any answer we ask for.
MOST = 1 << 20
PIECE = 65536


class WebError(OSError):
    """There is no answer, and a sentence that says why."""


class LateError(WebError):
    """It did not come in time."""


class Redirect(request.HTTPRedirectHandler):
    """Not from HTTPS to HTTP. What was said once to the first address in confidence is not said to the next: see
    `add_unredirected_header`.
    """

    max_redirections = 3

    def redirect_request(
        self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> request.Request | None:
        if not newurl.startswith("https://" if req.type == "https" else ("http://", "https://")):
            raise WebError(f"it sends us on to {newurl[:100]!r}, which is not asked")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


class Alarm:
    """Hangs up when the time is over: a timeout is for one piece only, and a head may come a byte at a time."""

    def __init__(self, limit: float) -> None:
        self.rung = False
        self.links: list[socket.socket] = []
        self._timer = threading.Timer(limit, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def connection(self, kind: Any) -> Any:
        """The same kind of connection, hung up on in time."""
        alarm = self

        class Bounded(kind):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                alarm.links.append(self.sock)
                if alarm.rung:
                    raise TimeoutError

        return Bounded

    def off(self) -> None:
        self._timer.cancel()
        self.links.clear()

    def _ring(self) -> None:
        self.rung = True
        for link in self.links:
            with suppress(OSError):
                # Not by TLS, which is in use just now.
                socket.socket.shutdown(link, socket.SHUT_RDWR)


class Plain(request.HTTPHandler):
    alarm: Alarm

    def do_open(self, http_class: Any, req: request.Request, **rest: Any) -> Any:
        return super().do_open(self.alarm.connection(http_class), req, **rest)


class Secure(request.HTTPSHandler):
    alarm: Alarm

    def do_open(self, http_class: Any, req: request.Request, **rest: Any) -> Any:
        return super().do_open(self.alarm.connection(http_class), req, **rest)


def answer(url: str, headers: Mapping[str, str], limit: float, most: int = MOST) -> bytes:
    """The body. `headers` may be secrets: they are sent to this address and to no other."""
    asked = request.Request(url, headers={"Accept": "application/json", "User-Agent": "jobsight"})  # noqa: S310
    if asked.type not in ("http", "https"):
        raise WebError(f"expected an address such as https://example.org/, got one of {asked.type!r}")
    for name, value in headers.items():
        asked.add_unredirected_header(name, value)
    opener = request.OpenerDirector()
    plain, secure = Plain(), Secure(context=ssl.create_default_context())
    plain.alarm = secure.alarm = alarm = Alarm(limit)
    for part in (
        request.ProxyHandler(),
        plain,
        secure,
        Redirect(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(part)
    try:
        with opener.open(asked, timeout=limit) as reply:
            return _body(reply, alarm, most)
    except HTTPError as error:
        error.close()
        raise WebError(f"it answered {error.code} {error.reason}"[:200]) from None
    except WebError:
        raise
    except TimeoutError:
        raise LateError(f"no answer within {limit:g} s") from None
    except (OSError, HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)
        if alarm.rung or isinstance(cause, TimeoutError):
            raise LateError(f"no answer within {limit:g} s") from None
        raise WebError(f"{cause or type(error).__name__}"[:200]) from None
    finally:
        alarm.off()


def _body(reply: object, alarm: Alarm, most: int) -> bytes:
    """In pieces: one that never ends would fill our memory."""
    parts: list[bytes] = []
    size = 0
    while piece := reply.read1(PIECE):  # type: ignore[attr-defined]
        parts.append(piece)
        size += len(piece)
        if size > most:
            raise WebError(f"the answer is larger than {most} bytes")
    if alarm.rung:
        # Hung up on, it looks whole.
        raise LateError("the answer took too long to come whole")
    return b"".join(parts)
