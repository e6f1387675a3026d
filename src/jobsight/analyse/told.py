"""Findings as somebody may see them: those that were kept, or what a look at the store says now."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from jobsight.analyse.finding import Found
from jobsight.analyse.judge import Backtest, backtest, judge
from jobsight.analyse.scene import lone, scene
from jobsight.analyse.standing import merged, plain
from jobsight.analyse.thresholds import changed, thresholds
from jobsight.analyse.watch import days
from jobsight.store.findings import Kept
from jobsight.store.protocol import Store
from jobsight.store.sight import Sight

# What is looked at before the time that is asked for: what is found about users needs a day.
BEFORE = 86400.0
# Thresholds are tried on no more than a year, which is looked at day by day.
LONGEST = 366 * BEFORE


class Chosen(NamedTuple):
    """Which findings; empty means any."""

    since: float
    until: float
    owner: str = ""
    account: str = ""
    node: str = ""
    code: str = ""
    state: str = ""
    subject: str = ""

    def has(self, one: dict[str, Any]) -> bool:
        return (
            self.owner in ("", one["owner"])
            and self.account in ("", one["account"])
            and self.code in ("", one["code"])
            and self.subject in ("", one["subject"])
            and self.state in ("", one["state"])
            and (not self.node or self.node in one["nodes"])
        )


class Told:
    """All findings of a store that are in sight."""

    def __init__(self, store: Store, sight: Sight | None, given: Mapping[str, Any]) -> None:
        """`given`: what settings say under `findings`."""
        self._store = store
        self._sight = sight
        self._given = dict(given)

    def kept(self, chosen: Chosen) -> list[dict[str, Any]]:
        """What whoever looks now and then has kept."""
        rows = self._store.findings.kept(chosen.since, chosen.until, self._sight)
        return self._plain(rows, chosen)

    def now(self, chosen: Chosen, now: float) -> list[dict[str, Any]]:
        """What a look at the store says, with what was written about it."""
        seen = scene(self._store, chosen.since - BEFORE, chosen.until, now)
        found = [one for one in judge(seen, thresholds(self._given)) if one.end >= chosen.since]
        known = self._store.findings.kept(chosen.since - BEFORE, chosen.until, None)
        told = {one.id for one in known}
        # Nobody has looked before, so it was first to be found when it began.
        rows = [
            row if row.id in told else row._replace(first=row.begun)
            for row in merged(found, known, now)
            if row.last == now and self._of(row)
        ]
        return self._plain(rows, chosen)

    def about(self, document: dict[str, Any], now: float, *, look: bool = True) -> list[dict[str, Any]]:
        """One job's, with what was written about them. Without a `look`, those that were kept."""
        known = self._store.findings.kept(0.0, math.inf, self._sight, document["key"])
        if not look:
            return [plain(one, now) for one in known]
        found = judge(lone(self._store, document, now), thresholds(self._given))
        rows = [row for row in merged(found, known, now) if row.last == now]
        # What takes more than the job itself to be seen was found before.
        rows += [one for one in known if one.code == "hog" and one.id not in {row.id for row in rows}]
        return [plain(row, now) for row in rows]

    def backtest(self, chosen: Chosen, tried: Iterable[str], now: float) -> dict[str, Any]:
        """Whom changed thresholds would tell of, and whom no more. SettingsError for those that cannot be."""
        limits, other = thresholds(self._given), thresholds(changed(self._given, tried))
        # As a server looks and keeps: what is found about users depends on the time that is looked at.
        kept: tuple[dict[str, Kept], dict[str, Kept]] = ({}, {})
        for since, until in days(max(chosen.since, now - LONGEST), min(chosen.until, now)):
            seen = scene(self._store, since, until, now)
            tested = backtest(seen, limits, other, lambda one: self._asked(one, chosen))
            for known, found in zip(kept, tested, strict=True):
                near = [row for row in known.values() if row.seen >= since and row.begun <= until]
                known |= {row.id: row for row in merged(found, near, now)}
        tested = Backtest(
            *([msgspec.json.decode(row.document, type=Found) for row in some.values()] for some in kept)
        )
        return {
            "counts": tested.counts(),
            "added": [msgspec.to_builtins(one) for one in tested.added],
            "gone": [msgspec.to_builtins(one) for one in tested.gone],
        }

    def acknowledge(self, number: str, who: str, note: str, now: float, *, look: bool = True) -> bool:
        """That somebody knows of a finding. With a `look`, one that was never kept is kept with that."""
        if not number.isalnum():
            return False
        # PostgreSQL's texts have no such character.
        note = note.replace("\0", "\ufffd")
        if self._store.findings.acknowledge(number, now, who, note, self._sight):
            return True
        if not look:
            return False
        chosen = Chosen(now - 30 * BEFORE, now)
        seen = scene(self._store, chosen.since, now, now)
        found = [one for one in judge(seen, thresholds(self._given)) if one.id == number and self._of(one)]
        self._store.findings.keep(merged(found, (), now))
        return bool(found) and self._store.findings.acknowledge(number, now, who, note, self._sight)

    def _plain(self, rows: Iterable[Kept], chosen: Chosen) -> list[dict[str, Any]]:
        found = [plain(row, chosen.since) for row in rows]
        return sorted((one for one in found if chosen.has(one)), key=_weight)

    def _asked(self, one: Found, chosen: Chosen) -> bool:
        whole = msgspec.to_builtins(one) | {"state": chosen.state}
        return one.end >= chosen.since and self._of(one) and chosen.has(whole)

    def _of(self, one: Found | Kept) -> bool:
        if self._sight is None:
            return True
        return one.owner in self._sight.owners or one.account in self._sight.accounts


def _weight(one: dict[str, Any]) -> tuple[float, float]:
    cost = (one["core_hours"] or 0.0) + 50 * (one["gpu_hours"] or 0.0) + 0.2 * (one["gib_hours"] or 0.0)
    return (-cost, -one["end"])
