"""Energy counters that never turn: what a processor's counters rose by since the exporter began.

The kernel's begin anew at their range, every quarter of an hour under load; Prometheus would take that for a restart
and lose what was taken since the scrape before. From zero, not from the kernel's number: a restart of the exporter
then costs the time it was away, and never adds a turn that was not.
"""

from typing import Any

from jobsight.schema.message import Message

# Watts that no such zone takes, as in `analyse.meter`: a rise that is steeper was a reset.
FASTEST = {"processor": 700.0, "part": 700.0, "memory": 300.0}
WHOLE = 3000.0


class Meters:
    """All counters of one node."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float, float]] = {}

    def turned(self, message: Message) -> Message:
        """A message of `power` with its energy counted through. Sensors that count without end stay as they are."""
        rows = message.rows
        if not rows:
            return message
        names = ("source", "device", "scope", "energy", "energy_range")
        columns = zip(*(rows[name] for name in names), strict=True)
        return message._replace(rows={**rows, "energy": tuple(self._one(message.uptime, *row) for row in columns)})

    def _one(self, now: float, source: str, device: str, scope: str, energy: float | None, span: float | None) -> Any:
        if source != "rapl" or energy is None or not span:
            return energy
        at, before, total = self._seen.get(device, (now, energy, 0.0))
        rise = energy - before if energy >= before else energy + span - before
        if rise <= max(0.0, now - at) * FASTEST.get(scope, WHOLE):
            total += rise
        self._seen[device] = (now, energy, total)
        return total
