"""What became of findings: told for the first time, still so, over, or acknowledged. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from jobsight.analyse.finding import JOB, Found
from jobsight.store.findings import Kept

# Findings about the same user or node with less than this between them are one (seconds).
GAP = 6 * 3600.0
STATES = ("new", "continuing", "ended", "acknowledged")


def merged(found: Iterable[Found], kept: Iterable[Kept], now: float) -> list[Kept]:
    """What is to be kept after a look at everything that `kept` has: what was found, and what no longer is."""
    before = {one.id: one for one in kept}
    rows: dict[str, Kept] = {}
    for one in found:
        known = before.get(one.id) or _same(one, before.values())
        row = _row(one, known, now)
        rows[row.id] = row
    for old in before.values():
        if old.id not in rows and old.ended is None:
            rows[old.id] = old._replace(ended=now)
    return list(rows.values())


def _same(one: Found, kept: Iterable[Kept]) -> Kept | None:
    """Of a user or node: what was told of it lately is the same, if it goes on."""
    if one.of == JOB:
        return None
    subject = (one.code, one.cluster, one.subject)
    near = [
        old
        for old in kept
        if (old.code, old.cluster, old.subject) == subject
        and old.seen >= one.begin - GAP
        and old.begun <= one.end + GAP
    ]
    return max(near, key=lambda old: old.seen, default=None)


def _row(one: Found, known: Kept | None, now: float) -> Kept:
    if known is not None and known.id != one.id:
        one.id, one.begin, one.end = known.id, min(known.begun, one.begin), max(known.seen, one.end)
    row = Kept(
        id=one.id,
        code=one.code,
        cluster=one.cluster,
        subject=one.subject,
        owner=one.owner,
        account=one.account,
        begun=one.begin,
        seen=one.end,
        first=now if known is None else known.first,
        last=now,
        ended=None if one.going else one.end,
        document=msgspec.json.encode(one).decode(),
    )
    if known is None:
        return row
    return row._replace(acknowledged=known.acknowledged, acknowledged_by=known.acknowledged_by, note=known.note)


def state(kept: Kept, since: float) -> str:
    """As a report of the time from then on has it."""
    if kept.acknowledged is not None:
        return "acknowledged"
    if kept.first >= since:
        return "new"
    return "continuing" if kept.ended is None else "ended"


def plain(kept: Kept, since: float) -> dict[str, Any]:
    """As it is shown and exported."""
    found: dict[str, Any] = msgspec.json.decode(kept.document)
    told = ("first", "last", "ended", "acknowledged", "acknowledged_by", "note")
    return found | {"state": state(kept, since)} | {name: getattr(kept, name) for name in told}
