"""Findings as they were told: when first, when last, and who has acknowledged them.

In a SQLite file of their own in the embedded store, or in a table of the PostgreSQL store. What is found again is
written over; what somebody wrote about it is not touched by that.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from jobsight.store.sight import Sight, within
from jobsight.store.tokens import Door

TABLES = (
    """CREATE TABLE IF NOT EXISTS finding (
      id TEXT PRIMARY KEY, code TEXT NOT NULL, cluster TEXT NOT NULL, subject TEXT NOT NULL, owner TEXT NOT NULL,
      account TEXT NOT NULL, begun DOUBLE PRECISION NOT NULL, seen DOUBLE PRECISION NOT NULL,
      first DOUBLE PRECISION NOT NULL, last DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION,
      document TEXT NOT NULL, acknowledged DOUBLE PRECISION, acknowledged_by TEXT, note TEXT)""",
    "CREATE INDEX IF NOT EXISTS finding_seen ON finding (seen)",
    "CREATE INDEX IF NOT EXISTS finding_subject ON finding (subject)",
)


class Kept(NamedTuple):
    """One finding as it is kept."""

    id: str
    code: str
    cluster: str
    subject: str
    owner: str
    account: str
    begun: float
    seen: float
    """From when to when it was so."""
    first: float
    last: float
    """When it was found for the first time, and for the last."""
    ended: float | None
    """When it was no longer so; None while it may be."""
    document: str
    acknowledged: float | None = None
    acknowledged_by: str | None = None
    note: str | None = None


class Findings(Protocol):
    """Where findings are kept."""

    def kept(self, since: float, until: float, sight: Sight | None = None, subject: str = "") -> list[Kept]:
        """Those that were so at some time from one to the other; of whom whoever asks may see. Of one subject, if
        that is named.
        """

    def keep(self, found: Sequence[Kept]) -> None:
        """Write findings, new ones and those that are there. Acknowledgements stay as they are."""

    def acknowledge(self, number: str, now: float, who: str, note: str, sight: Sight | None = None) -> bool:
        """That somebody knows of it; False if there is none of that number in sight. Said again, the last counts."""

    def forget(self, before: float) -> int:
        """Drop what was last so before that; how many."""

    def close(self) -> None: ...


# What is found again may have changed but for when it was first found.
CHANGING = ("owner", "account", "begun", "seen", "last", "ended", "document")
COLUMNS = tuple(name for name in Kept._fields if name not in ("acknowledged", "acknowledged_by", "note"))
PUT = (
    f"INSERT INTO finding ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)}) ON CONFLICT (id) "
    f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in CHANGING)}"
)


class StoredFindings:
    """See `Findings`."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def kept(self, since: float, until: float, sight: Sight | None = None, subject: str = "") -> list[Kept]:
        seen, names = within(sight, "?")
        one, values = ("subject = ? AND", [subject]) if subject else ("", [])
        asked = (
            f"SELECT {', '.join(Kept._fields)} FROM finding WHERE {one} seen >= ? AND begun <= ? AND {seen} "
            "ORDER BY seen DESC, id"
        )
        return [Kept(*row) for row in self._door.query(asked, [*values, since, until, *names])]

    def keep(self, found: Sequence[Kept]) -> None:
        rows: list[tuple[Any, ...]] = [one[: len(COLUMNS)] for one in found]
        if rows:
            self._door.each(PUT, rows)

    def acknowledge(self, number: str, now: float, who: str, note: str, sight: Sight | None = None) -> bool:
        seen, names = within(sight, "?")
        change = f"UPDATE finding SET acknowledged = ?, acknowledged_by = ?, note = ? WHERE id = ? AND {seen}"
        return bool(self._door.change((change, [now, who, note, number, *names])))

    def forget(self, before: float) -> int:
        return self._door.change(("DELETE FROM finding WHERE seen < ?", [before]))

    def close(self) -> None:
        self._door.close()
