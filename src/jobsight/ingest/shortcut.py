"""The way of `POST /ingest` past the web framework: what that does for pages costs more than to check a message."""

from collections.abc import Awaitable, Callable

from fastapi import Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/ingest"
Answer = Callable[[Request], Awaitable[Response]]
Excuse = Callable[[Request, Exception], Response]


class Shortcut:
    """Middleware: answers what goes to our path by itself, and leaves the rest to the application."""

    def __init__(self, app: ASGIApp, answer: Answer, trouble: type[Exception], excuse: Excuse) -> None:
        """`excuse` makes an answer of the `trouble` that the application would have caught."""
        self._app = app
        self._answer = answer
        self._trouble = trouble
        self._excuse = excuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except self._trouble as error:
            response = self._excuse(request, error)
        await response(scope, receive, send)
