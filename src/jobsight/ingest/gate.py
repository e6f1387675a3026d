"""Who may send: the token a request shows, and what it is good for."""

import asyncio
import hmac
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from jobsight.ingest.limit import DeniedError
from jobsight.ingest.token import Token, Tokens, ended, matches, split

T = TypeVar("T")

# How often it is written down which tokens were used.
REMEMBER = 30.0


class Scope(NamedTuple):
    """Whose messages a sender may bring; None means any."""

    cluster: str | None = None
    node: str | None = None
    token: str | None = None
    """The id of the token that says so."""

    def outside(self, cluster: str, node: str) -> tuple[str, str] | None:
        """Where a message is another's, and a sentence; None if it may come in."""
        if self.cluster not in (None, cluster):
            return "$.cluster", f"token {self.token} is for cluster {self.cluster}, the message is of {cluster}"
        if self.node not in (None, node):
            return "$.node", f"token {self.token} is for node {self.node}, the message is of {node}"
        return None


class Gate:
    """Lets senders in. What it knows of tokens is what the store says at that moment."""

    def __init__(self, tokens: Tokens, fixed: str | None, own: str, clock: Callable[[], float] = time.time) -> None:
        """`fixed` is the token of `serve.token_file`; `own` that of this server's own programs, which nobody needs
        to show who is not asked for one.
        """
        self._tokens = tokens
        self._fixed = fixed
        self._good: Sequence[bytes] = [text.encode() for text in (fixed, own) if text]
        self._clock = clock
        self._used: dict[str, float] = {}
        self._remembered = 0.0

    def needed(self) -> bool:
        """Whether senders must show a token."""
        return bool(self._fixed) or self._tokens.needed()

    async def admit(self, header: str) -> Scope:
        """What the header `Authorization` is good for. DeniedError if for nothing."""
        scheme, _, given = header.partition(" ")
        given = given.strip() if scheme.lower() == "bearer" else ""
        shown = given.encode("utf-8", "surrogateescape")
        # Every one is compared, so that time does not tell which was nearer.
        if sum(hmac.compare_digest(shown, good) for good in self._good):
            return Scope()
        if parts := split(given):
            token = await self._ask(lambda: self._tokens.find(parts[0]))
            if token is not None and matches(parts[1], token.digest):
                return await self._enter(token)
        if not await self._ask(self.needed):
            return Scope()
        if given:
            raise DeniedError(401, "this server does not know this token")
        raise DeniedError(401, "this server needs a token: set token_file, see `jobsight enrol`")

    def close(self) -> None:
        self._remember(self._used)

    async def _enter(self, token: Token) -> Scope:
        now = self._clock()
        if why := ended(token, now):
            raise DeniedError(401, f"token {token.id} {why}")
        self._used[token.id] = now
        if now >= self._remembered + REMEMBER:
            # Not at every request: it is a write to disk.
            used, self._used, self._remembered = self._used, {}, now
            await asyncio.to_thread(self._remember, used)
        return Scope(token.cluster, token.node, token.id)

    def _remember(self, used: dict[str, float]) -> None:
        # A store that cannot write that down is no reason to turn anybody away. It says RuntimeError.
        with suppress(RuntimeError):
            self._tokens.touch(used)

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.to_thread(question) if self._tokens.waits else question()
