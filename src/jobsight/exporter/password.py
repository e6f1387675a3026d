"""Passwords of the web config file: compared by bcrypt, once; what came of it is remembered for a while.

bcrypt is slow on purpose, and a scrape every fifteen seconds shows the same password for ever.
"""

import base64
import binascii
import hmac
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import Lock

from jobsight.drivers import libcrypt

# So many answers are remembered of each kind; the oldest goes first.
KEPT = 100
# What an unknown user's password is compared with, so that time does not tell that there is no such user. Nobody
# knows its password.
NOBODY = "$2y$10$abcdefghijklmnopqrstuuO0Q1R2S3T4U5V6W7X8Y9Z0a1b2c3d4e"


class Passwords:
    """Answers whose password was shown."""

    def __init__(self, hashed: Callable[[bytes, bytes], bytes] = libcrypt.hashed) -> None:
        self._hashed = hashed
        # What is remembered is a digest with this in it: of no use to whoever reads our memory's dump tomorrow.
        self._salt = os.urandom(32)
        # Apart, so that guesses do not drive out those who are right.
        self._right: dict[bytes, bool] = {}
        self._wrong: dict[bytes, bool] = {}
        # One at a time: guesses must not take all the cores there are.
        self._turn = Lock()

    def user(self, header: str, users: Mapping[str, str]) -> str | None:
        """Who shows this header `Authorization`; None if nobody does."""
        known, name = self.remembered(header, users)
        found = credentials(header)
        if known or found is None:
            return name
        name, password = found
        kept = users.get(name) or nobody(users)
        right = self._compared(password, kept.encode(), self._digest(name, kept, password))
        return name if right and name in users else None

    def remembered(self, header: str, users: Mapping[str, str]) -> tuple[bool, str | None]:
        """Whether the answer is known without bcrypt, and that answer."""
        found = credentials(header)
        if found is None:
            return True, None
        name, password = found
        digest = self._digest(name, users.get(name) or nobody(users), password)
        if digest in self._right:
            return True, name if name in users else None
        return digest in self._wrong, None

    def _digest(self, name: str, kept: str, password: bytes) -> bytes:
        # With the name: else a guess that was slow for one unknown user and quick for the next tells them apart.
        return hmac.digest(self._salt, b"\0".join((name.encode(), kept.encode(), password)), sha256)

    def _compared(self, password: bytes, kept: bytes, digest: bytes) -> bool:
        with self._turn:
            right = hmac.compare_digest(self._hashed(password, kept), kept)
            known = self._right if right else self._wrong
            if len(known) >= KEPT:
                del known[next(iter(known))]
            known[digest] = right
        return right


def nobody(users: Mapping[str, str]) -> str:
    """`NOBODY`, at the cost that the users' own hashes have; the highest where they differ."""
    heads = [kept[:7] for kept in users.values() if kept.startswith("$2")]
    return max(heads, key=lambda head: head[4:6], default=NOBODY[:7]) + NOBODY[7:]


def credentials(header: str) -> tuple[str, bytes] | None:
    """User and password of HTTP's basic authentication."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None
