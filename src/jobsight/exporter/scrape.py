"""One scrape: every collector read now, as Prometheus text. A collector that fails shows as failed and no more."""

from jobsight import catalogue
from jobsight.agent.origin import origin
from jobsight.agent.runner import Runner
from jobsight.clock import Clock
from jobsight.host import Host
from jobsight.schema.exposition import PREFIX, exposition
from jobsight.schema.message import Message, Status
from jobsight.settings import Settings


class Scraper:
    """Reads one machine on request, through the same collectors as the agent."""

    def __init__(self, settings: Settings, host: Host, clock: Clock) -> None:
        # No program is run for a scrape, and a scheduler's jobs are no series.
        self._plans = [plan for plan in settings.collect if plan.enabled and not catalogue.collector(plan.name).runs]
        self._runner = Runner(host, origin(settings, host), clock)

    def scrape(self, chosen: list[str]) -> str:
        """The text; `chosen` collectors, or all that are enabled."""
        lines: list[str] = []
        states = []
        for plan in self._plans:
            if chosen and plan.name not in chosen:
                continue
            found = catalogue.collector(plan.name)
            message = self._runner.run(found, plan.options, plan.deadline, plan.every)
            states.append((plan.name, message))
            if message is not None:
                rows = zip(*message.rows.values(), strict=True)
                named = [found.record(**dict(zip(message.rows, row, strict=True))) for row in rows]
                lines += exposition(plan.name, found.record, named)
        return "\n".join([*lines, *_states(states)]) + "\n"


def _states(states: list[tuple[str, Message | None]]) -> list[str]:
    success, seconds = f"{PREFIX}_scrape_collector_success", f"{PREFIX}_scrape_collector_duration_seconds"
    lines = [f"# HELP {success} Whether the collector's source was read; absent sources are not listed."]
    lines.append(f"# TYPE {success} gauge")
    known = [(name, message) for name, message in states if message is None or message.status != Status.ABSENT]
    for name, message in known:
        good = message is not None and message.status == Status.OK
        lines.append(f'{success}{{collector="{name}"}} {int(good)}')
    lines += [f"# HELP {seconds} How long reading took.", f"# TYPE {seconds} gauge"]
    lines += [f'{seconds}{{collector="{name}"}} {message.seconds!r}' for name, message in known if message]
    return lines
