"""What a token is: who may send, as which cluster and node, and for how long. Pure.

A token is `<id>.<secret>`. The id is public: lists show it, and it finds the token. The secret is 256 random bits,
so a plain SHA-256 keeps it: nobody can try them all. Only that digest is stored. An invite's key has the same form
and is traded for a token; the node makes the token's secret itself, so an answer that was lost can be asked for
again with the same words.
"""

import hmac
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

# Letters nobody takes for others.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
ID = 8
# 256 bits in the letters of base64.
SECRET = 43


class Token(NamedTuple):
    """One sender's permit. Without a node it is good for every node of its cluster."""

    id: str
    digest: str
    cluster: str
    node: str | None
    made: float
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None
    invite: str | None = None
    """The invite it was traded for."""


class Invite(NamedTuple):
    """A key that is good for so many tokens."""

    id: str
    digest: str
    cluster: str
    node: str | None
    made: float
    expires: float | None
    uses: int
    lifetime: float | None = None
    """Seconds that its tokens are good for."""
    spent: int = 0
    revoked: float | None = None


class Tokens(Protocol):
    """Where tokens and invites are kept. Changes made by another process are seen at once."""

    waits: bool
    """Whether an answer may take a while, so that it must not be asked for where everybody waits."""

    def needed(self) -> bool:
        """Whether there is a token, good or not: revoking the last one must not open the door."""

    def find(self, number: str) -> Token | None: ...

    def find_invite(self, number: str) -> Invite | None: ...

    def traded(self, invite: str, digest: str) -> Token | None:
        """The token this secret has been given for that invite already."""

    def add(self, token: Token) -> None: ...

    def add_invite(self, invite: Invite) -> None: ...

    def spend(self, token: Token) -> bool:
        """Use its invite once and add it, both or neither; False if the invite is used up."""

    def revoke(self, number: str, now: float) -> bool:
        """A token or an invite; False if there is none."""

    def touch(self, used: Mapping[str, float]) -> None:
        """Remember when tokens were used."""

    def tokens(self) -> list[Token]: ...

    def invites(self) -> list[Invite]: ...

    def close(self) -> None: ...


def new_id() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(ID))


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def split(text: str) -> tuple[str, str] | None:
    """Id and secret; None if it has not the form."""
    number, dot, secret = text.partition(".")
    return (number, secret) if dot and len(number) == ID and len(secret) == SECRET else None


def matches(secret: str, kept: str) -> bool:
    """Compared in the same time wherever they differ."""
    return hmac.compare_digest(digest(secret), kept)


def ended(item: Token | Invite, now: float) -> str | None:
    """Why it is no longer good: the end of a sentence."""
    if item.revoked is not None:
        return f"was revoked on {day(item.revoked)}"
    if item.expires is not None and item.expires <= now:
        return f"expired on {day(item.expires)}"
    if isinstance(item, Invite) and item.spent >= item.uses:
        return "has been used up"
    return None


def day(instant: float) -> str:
    return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M} UTC"


class UnknownKeyError(ValueError):
    """A key nobody has made: perhaps a guess."""


class TradeError(ValueError):
    """A key that buys nothing, and why."""


def trade(tokens: Tokens, key: str, node: str, secret: str, now: float) -> Token:
    """A token for a key, of the secret the node has made. Asked again with the same words it gives the same."""
    invite = tokens.find_invite(key.partition(".")[0])
    if invite is None or not matches(key.partition(".")[2], invite.digest):
        raise UnknownKeyError("this server does not know this key: make one with `jobsight token invite`")
    known = tokens.traded(invite.id, digest(secret))
    if known is None:
        if why := ended(invite, now):
            raise TradeError(f"key {invite.id} {why}: make another with `jobsight token invite`")
        if invite.node not in (None, node):
            raise TradeError(f"key {invite.id} is for node {invite.node}, this is {node}")
        expires = None if invite.lifetime is None else now + invite.lifetime
        made = Token(new_id(), digest(secret), invite.cluster, node, now, expires, invite=invite.id)
        if tokens.spend(made):
            return made
        # Somebody was quicker: another node, or this one's own first question.
        known = tokens.traded(invite.id, digest(secret))
    if known is None:
        raise TradeError(f"key {invite.id} has been used up: make another with `jobsight token invite`")
    if why := ended(known, now):
        raise TradeError(f"key {invite.id} was traded for token {known.id}, which {why}")
    if known.node != node:
        raise TradeError(f"key {invite.id} was traded by node {known.node}, this is {node}")
    return known
