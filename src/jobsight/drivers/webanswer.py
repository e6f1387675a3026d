"""What an address on the web answers: within a time and a size, by the proxy that the environment names.

Loaded by the one agent that is told to ask, not by every node: the standard library's client takes some megabytes.
"""

import ssl
import time
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO
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


def answer(url: str, headers: Mapping[str, str], limit: float, most: int = MOST) -> bytes:
    """The body. `headers` may be secrets: they are sent to this address and to no other."""
    asked = request.Request(url, headers={"Accept": "application/json", "User-Agent": "jobsight"})  # noqa: S310
    if asked.type not in ("http", "https"):
        raise WebError(f"expected an address such as https://example.org/, got one of {asked.type!r}")
    for name, value in headers.items():
        asked.add_unredirected_header(name, value)
    opener = request.OpenerDirector()
    for part in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(context=ssl.create_default_context()),
        Redirect(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(part)
    until = time.monotonic() + limit
    try:
        with opener.open(asked, timeout=limit) as reply:
            return _body(reply, until, most)
    except HTTPError as error:
        error.close()
        raise WebError(f"it answered {error.code} {error.reason}"[:200]) from None
    except WebError:
        raise
    except TimeoutError:
        raise LateError(f"no answer within {limit:g} s") from None
    except (OSError, HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise LateError(f"no answer within {limit:g} s") from None
        raise WebError(f"{cause or type(error).__name__}"[:200]) from None


def _body(reply: object, until: float, most: int) -> bytes:
    """In pieces: one that comes a byte at a time would keep us waiting for ever."""
    parts: list[bytes] = []
    size = 0
    while piece := reply.read1(PIECE):  # type: ignore[attr-defined]
        parts.append(piece)
        size += len(piece)
        if size > most:
            raise WebError(f"the answer is larger than {most} bytes")
        if time.monotonic() > until:
            raise LateError("the answer took too long to come whole")
    return b"".join(parts)
