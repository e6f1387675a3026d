"""The web config file before everything the server shows: passwords, and headers of every answer.

Senders have tokens, and callers on the socket beside the store are known by the kernel: neither is asked here.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobsight.exporter.password import Passwords
from jobsight.exporter.webconfig import Watched

# What tokens guard.
SENDERS = ("/ingest", "/enrol")
# Passwords nobody has looked at yet: those beyond come again.
WAITING = 50
AGAIN = "2"


# The same for everybody.
SHARED = ("/static/", "/bokeh/")


class Private:
    """Nobody between us and a viewer may keep what was for that one alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start" and not scope["path"].startswith(SHARED):
                MutableHeaders(scope=message)["Cache-Control"] = "private, no-store"
            await send(message)

        await self._app(scope, receive, answered if scope["type"] == "http" else send)


class Guard:
    """An application around an application."""

    def __init__(self, app: ASGIApp, watched: Watched) -> None:
        self._app = app
        self._watched = watched
        self._passwords = Passwords()
        # A thread of its own: bcrypt takes its time, and whoever guesses must not hold those that others wait for.
        self._hashing = ThreadPoolExecutor(1, "password")
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        config = self._watched.config()

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in config.headers:
                    headers[name] = value
            await send(message)

        state = scope.setdefault("state", {})
        if config.users and scope["path"] not in SENDERS and "caller" not in state:
            name = await self._user(Headers(scope=scope).get("authorization", ""), dict(config.users))
            if not name:
                await (_unknown() if name is None else _busy())(scope, receive, answered)
                return
            state["password_user"] = name
        await self._app(scope, receive, answered)

    async def _user(self, shown: str, users: dict[str, str]) -> str | None:
        """Whose password this is; None if nobody's, and no name if too many are being looked at."""
        known, name = self._passwords.remembered(shown, users)
        if known:
            return name
        if self._waiting >= WAITING:
            return ""
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._hashing, self._passwords.user, shown, users)
        finally:
            self._waiting -= 1


def _unknown() -> PlainTextResponse:
    return PlainTextResponse("Unauthorized\n", 401, {"WWW-Authenticate": 'Basic realm="jobsight"'})


def _busy() -> PlainTextResponse:
    return PlainTextResponse("too many passwords to look at\n", 503, {"Retry-After": AGAIN})
