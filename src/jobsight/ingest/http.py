"""`POST /ingest`: newline-separated messages, gzipped or plain; answered when they are durable."""

import asyncio
import time
import zlib
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import Message

from jobsight.ingest.accept import LARGEST, Refused, accept
from jobsight.ingest.convoy import Append, Convoy
from jobsight.ingest.gate import Gate, Scope
from jobsight.ingest.limit import CLUSTERWIDE, BusyError, DeniedError, Limits, Rate, Slots
from jobsight.ingest.lines import Lines
from jobsight.ingest.quarantine import Quarantine
from jobsight.ingest.shortcut import PATH, Answer

# Accepted lines are handed to the log in groups of about this size, so a long body needs little memory.
GROUP = 4 * 2**20
KIND = "application/x-ndjson"
# How many refusals an answer spells out.
TOLD = 20
# A body of so many bad messages is not from an agent of ours.
MOST_REFUSED = 10_000
# What a held line costs besides its bytes.
OVERHEAD = 256
# A disk that is full may have room again.
FULL = 10.0


def receiver(append: Append, quarantine: Quarantine, gate: Gate, limits: Limits) -> Answer:
    """What answers a request to take messages."""
    slots = Slots(limits.requests)
    rate = Rate(limits.rate, time.monotonic) if limits.rate else None
    convoy = Convoy(append)

    async def ingest(request: Request) -> JSONResponse:
        report: dict[str, Any] = {}
        try:
            headers = _headers(request)
            scope = await gate.admit(headers.get("authorization", ""))
            _check(headers, limits)
            if rate and scope.token and (wait := rate.wait(scope.token)):
                return _denied(DeniedError(429, f"token {scope.token} sends more than {limits.rate}/s", wait), report)
            with slots.one():
                intake = Intake(convoy, quarantine, scope, limits)
                report = intake.report
                await _read(request, intake, limits, packed=headers.get("content-encoding") == "gzip")
            if rate and scope.token:
                rate.count(scope.token, intake.seen)
        except DeniedError as error:
            return _denied(error, report)
        return JSONResponse(report)

    return ingest


def router(take: Answer) -> APIRouter:
    routes = APIRouter()
    routes.add_api_route(PATH, take, methods=["POST"])
    return routes


def _denied(error: DeniedError, report: dict[str, Any]) -> JSONResponse:
    return JSONResponse({"error": str(error), **report, **error.more}, error.status, error.headers())


def _headers(request: Request) -> dict[str, str]:
    """By name, in small letters; of one that comes twice the first. The framework looks through all for each."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(request.scope["headers"])}


def _check(headers: dict[str, str], limits: Limits) -> None:
    """What can be said before a byte of the body is read."""
    if (encoding := headers.get("content-encoding", "identity")) not in ("gzip", "identity"):
        raise DeniedError(415, f"cannot read content-encoding {encoding}: send gzip or none")
    if not headers.get("content-type", "").startswith(KIND):
        # Also what keeps a page in somebody's browser from posting here: it may not send this type unasked.
        raise DeniedError(415, f"send messages as {KIND}")
    length = headers.get("content-length", "")
    most = limits.packed if encoding == "gzip" else limits.unpacked
    if length.isdecimal() and int(length) > most:
        raise DeniedError(413, f"{length} bytes, more than {most} in one request")


async def _read(request: Request, intake: "Intake", limits: Limits, *, packed: bool) -> None:
    """The body as it arrives. DeniedError says what is wrong with it, and what to do."""
    lines = Lines(packed=packed, limit=LARGEST)
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.whole
    taken = 0
    try:
        async with asyncio.timeout(limits.quiet) as patience:
            more = True
            while more:
                piece, more = _piece(await request.receive())
                # Only the sender is hurried, not the disk. Most bodies come whole, and are waited for once.
                patience.reschedule(None)
                taken += len(piece)
                if packed and taken > limits.packed:
                    raise DeniedError(413, f"more than {limits.packed} bytes in one request")
                await intake.take(lines.feed(piece))
                if lines.unpacked > limits.unpacked:
                    raise DeniedError(413, f"more than {limits.unpacked} bytes in one request when unpacked")
                if more:
                    patience.reschedule(min(loop.time() + limits.quiet, end))
            await intake.take(lines.finish())
            await intake.finish()
    except zlib.error as error:
        raise DeniedError(400, f"the body is not gzip: {error}") from None
    except ClientDisconnect:
        raise DeniedError(400, "the body ends in the middle") from None
    except BusyError as error:
        raise DeniedError(503, str(error), error.after) from None
    except OSError as error:
        if patience.expired():
            raise DeniedError(408, "the body came too slowly") from None
        # Not durable, so not acknowledged: the sender keeps it and comes again.
        raise DeniedError(503, f"cannot write: {error}", FULL) from None


def _piece(message: Message) -> tuple[bytes, bool]:
    """Bytes of a body, and whether more will come. ClientDisconnect if nobody is there any more."""
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


class Intake:
    """One request's messages on their way in."""

    def __init__(self, convoy: Convoy, quarantine: Quarantine, scope: Scope, limits: Limits) -> None:
        self._convoy = convoy
        self._quarantine = quarantine
        self._scope = scope
        self._most = limits.messages
        self._speakers = frozenset(limits.speakers)
        self._good: list[bytes] = []
        self._bad: list[Refused] = []
        self._size = 0
        self.seen = 0
        self.report: dict[str, Any] = {"accepted": 0, "refused": 0, "reasons": []}

    async def take(self, lines: Iterable[tuple[bytes, int]]) -> None:
        for line, length in lines:
            self.seen += 1
            if self.seen > self._most:
                raise DeniedError(413, f"more than {self._most} messages in one request")
            found = (
                accept(line) if length == len(line) else Refused(line, "$", f"{length} bytes, more than {LARGEST}")
            )
            if isinstance(found, Refused):
                self._bad.append(found)
            elif wrong := self._scope.outside(found.cluster, found.node):
                # Not set aside like one that cannot be read: it is well-formed, and somebody else's. The sender keeps
                # it until it shows the right token.
                raise DeniedError(403, wrong[1], path=wrong[0])
            elif self._speakers and found.collector in CLUSTERWIDE and found.node not in self._speakers:
                reason = f"{found.node} is none of serve.scheduler_nodes, which alone speak for their cluster"
                found = Refused(line, "$.collector", reason)
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
        report = self.report
        if good:
            await self._convoy.join(good)
            report["accepted"] += len(good)
        if bad:
            await asyncio.to_thread(self._quarantine.keep, bad)
            report["refused"] += len(bad)
            if report["refused"] > MOST_REFUSED:
                raise DeniedError(400, f"more than {MOST_REFUSED} messages refused: this is not what we read")
            told = report["reasons"]
            told += [{"path": item.path, "reason": item.reason} for item in bad[: TOLD - len(told)]]
