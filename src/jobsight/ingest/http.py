"""`POST /ingest`: newline-separated messages, gzipped or plain; answered when they are durable."""

import asyncio
import hmac
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from jobsight.ingest.accept import LARGEST, Refused, accept
from jobsight.ingest.lines import Lines
from jobsight.ingest.quarantine import Quarantine

# Makes lines durable; see `store.protocol.Store.append`.
Append = Callable[[Sequence[bytes]], "Future[None]"]

# Accepted lines are handed to the log in groups of about this size, so a long body needs little memory.
GROUP = 4 * 2**20
KIND = "application/x-ndjson"
# How many refusals an answer spells out.
TOLD = 20
# A body of so many bad messages is not from an agent of ours.
MOST_REFUSED = 10_000
# What a held line costs besides its bytes.
OVERHEAD = 256


def router(append: Append, quarantine: Quarantine, token: str | None) -> APIRouter:
    routes = APIRouter()

    @routes.post("/ingest")
    async def ingest(request: Request) -> JSONResponse:
        if token and not hmac.compare_digest(
            request.headers.get("authorization", "").encode(), f"Bearer {token}".encode()
        ):
            return JSONResponse({"error": "this server needs a token: set token_file"}, 401)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding not in ("gzip", "identity"):
            return JSONResponse({"error": f"cannot read content-encoding {encoding}: send gzip or none"}, 415)
        if not request.headers.get("content-type", "").startswith(KIND):
            # Also what keeps a page in somebody's browser from posting here: it may not send this type unasked.
            return JSONResponse({"error": f"send messages as {KIND}"}, 415)
        intake = Intake(append, quarantine)
        lines = Lines(packed=encoding == "gzip", limit=LARGEST)
        try:
            async for piece in request.stream():
                await intake.take(lines.feed(piece))
            await intake.take(lines.finish())
            await intake.finish()
        except zlib.error as error:
            return JSONResponse({"error": f"the body is not gzip: {error}"}, 400)
        except TooBadError as error:
            return JSONResponse({"error": str(error), **intake.report()}, 400)
        except OSError as error:
            # Not durable, so not acknowledged: the sender keeps it and comes again.
            return JSONResponse({"error": f"cannot write: {error}"}, 503, {"Retry-After": "10"})
        return JSONResponse(intake.report())

    return routes


class TooBadError(ValueError):
    """So much was refused that the rest is not worth reading."""


class Intake:
    """One request's messages on their way in."""

    def __init__(self, append: Append, quarantine: Quarantine) -> None:
        self._append = append
        self._quarantine = quarantine
        self._good: list[bytes] = []
        self._bad: list[Refused] = []
        self._size = 0
        self.accepted = 0
        self.refused = 0
        self.told: list[dict[str, str]] = []

    async def take(self, lines: Iterable[tuple[bytes, int]]) -> None:
        for line, length in lines:
            found = (
                accept(line) if length == len(line) else Refused(line, "$", f"{length} bytes, more than {LARGEST}")
            )
            if isinstance(found, Refused):
                self._bad.append(found)
            else:
                self._good.append(found.line)
            self._size += len(found.line) + OVERHEAD
            if self._size > GROUP:
                await self.finish()

    async def finish(self) -> None:
        """Make durable what is held, the good and the bad."""
        good, bad = self._good, self._bad
        self._good, self._bad, self._size = [], [], 0
        if good:
            await asyncio.wrap_future(self._append(good))
            self.accepted += len(good)
        if bad:
            await asyncio.to_thread(self._quarantine.keep, bad)
            self.refused += len(bad)
            if self.refused > MOST_REFUSED:
                raise TooBadError(f"more than {MOST_REFUSED} messages refused: this is not what we read")
            self.told += [{"path": item.path, "reason": item.reason} for item in bad[: TOLD - len(self.told)]]

    def report(self) -> dict[str, Any]:
        return {"accepted": self.accepted, "refused": self.refused, "reasons": self.told}
