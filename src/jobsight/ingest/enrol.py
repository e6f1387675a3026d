"""`POST /enrol`: a node trades an invite's key for a token of its own."""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from msgspec import Meta, Struct

from jobsight.ingest.limit import DeniedError, Rate
from jobsight.ingest.token import ID, SECRET, Tokens, TradeError, UnknownKeyError, trade

LARGEST = 4096
# Wrong keys from one address: ten at once, then one in six seconds.
GUESSES = 10 / 60
PATIENCE = 10.0
KEY = ID + 1 + SECRET


class Wish(Struct, forbid_unknown_fields=True):
    """What a node asks with. It makes the secret itself: asked again with the same one it gets the same token."""

    key: Annotated[str, Meta(min_length=KEY, max_length=KEY)]
    node: Annotated[str, Meta(min_length=1, max_length=255)]
    secret: Annotated[str, Meta(min_length=SECRET, max_length=SECRET, pattern=r"^[A-Za-z0-9_-]*$")]


def router(tokens: Tokens, clock: Callable[[], float] = time.time) -> APIRouter:
    routes = APIRouter()
    guesses = Rate(GUESSES, clock)

    @routes.post("/enrol")
    async def enrol(request: Request) -> JSONResponse:
        who = request.client.host if request.client else ""
        try:
            wish = await _wish(request)
            token = await asyncio.to_thread(trade, tokens, wish.key, wish.node, wish.secret, clock())
        except UnknownKeyError as error:
            # Nobody guesses 256 bits, however quickly; this only bounds the noise. The right key is taken all the
            # same: behind a proxy all nodes have one address, and one that guesses must not keep the others out.
            if wait := guesses.wait(who):
                return _denied(DeniedError(429, "too many wrong keys from this address", wait))
            guesses.count(who, 1)
            return JSONResponse({"error": str(error)}, 403)
        except TradeError as error:
            return JSONResponse({"error": str(error)}, 403)
        except DeniedError as error:
            return _denied(error)
        plain = {"id": token.id, "cluster": token.cluster, "node": token.node, "expires": token.expires}
        # It holds nothing secret, the node has that; but nobody has a reason to keep it either.
        return JSONResponse(plain, headers={"Cache-Control": "no-store"})

    return routes


def _denied(error: DeniedError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, error.status, error.headers())


async def _wish(request: Request) -> Wish:
    if not request.headers.get("content-type", "").startswith("application/json"):
        # Also what keeps a page in somebody's browser from asking: it may not send this type unasked.
        raise DeniedError(415, "ask with application/json")
    body = b""
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST:
                    raise DeniedError(413, f"more than {LARGEST} bytes")
    except TimeoutError:
        raise DeniedError(408, "the question took too long") from None
    try:
        return msgspec.json.decode(body, type=Wish)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # A key of another length is no key of ours; that is all there is to say.
        raise DeniedError(400, f"expected key, node and secret: {error}") from None
