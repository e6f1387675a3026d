"""A time series has an identifier: a UUID (version 5) made of what names it, in a namespace of the site's own.

Whoever has the same namespace and the same labels has the same identifier, without asking anybody. The namespace is
random and made once; where it is kept secret the identifier tells nobody the labels.
"""

from collections.abc import Iterable
from hashlib import sha1
from typing import Any
from uuid import UUID, uuid4

SEPARATOR = ":"
MISSING = "\\-"


def new_namespace() -> UUID:
    """For a site that has none yet."""
    return uuid4()


def series_name(labels: Iterable[Any]) -> str:
    r"""`fox:n1:4711`: labels in their order, as text. A colon or backslash within one is marked by a backslash and a
    missing one is `\-`, so that different labels never make one name. Missing ones at the end are left out: a label
    that a record gains later changes no name.
    """
    parts = [MISSING if label is None else _marked(str(label)) for label in labels]
    while parts and parts[-1] == MISSING:
        parts.pop()
    return SEPARATOR.join(parts)


def series_id(namespace: UUID, name: str) -> UUID:
    """What `uuidgen --sha1` makes of the same. For Lustre the name is `<target>:<entry_id>`."""
    # Not uuid.uuid5: it takes twice as long, and a store makes one for every process.
    digest = int.from_bytes(sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()[:16], "big")
    return UUID(int=digest & ~(0xF000 << 64) & ~(0xC000 << 48) | 5 << 76 | 0x8000 << 48)


def _marked(text: str) -> str:
    if SEPARATOR in text or "\\" in text:
        return text.replace("\\", "\\\\").replace(SEPARATOR, f"\\{SEPARATOR}")
    return text
