"""The web config file before everything the server shows: passwords, and headers of every answer.

Senders have tokens, and callers on the socket beside the store are known by the kernel: neither is asked here.
"""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobsight.exporter.password import Passwords
from jobsight.exporter.webconfig import Watched

# What tokens guard.
SENDERS = ("/ingest", "/enrol")


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
            shown = Headers(scope=scope).get("authorization", "")
            # Away from the loop, which must go on while bcrypt takes its time.
            name = await asyncio.to_thread(self._passwords.user, shown, dict(config.users))
            if name is None:
                refused = PlainTextResponse("Unauthorized\n", 401, {"WWW-Authenticate": 'Basic realm="jobsight"'})
                await refused(scope, receive, answered)
                return
            state["password_user"] = name
        await self._app(scope, receive, answered)
