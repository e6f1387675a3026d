"""The stats server's command line: its flags as they stand in units and scripts, and the settings they are here."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jobsight.formats import quantity
from jobsight.serving import Access
from jobsight.settings import Settings


class Flag(NamedTuple):
    """One flag, in all its spellings."""

    names: tuple[str, ...]
    apply: Callable[[Settings, str], Settings] | None = None
    remark: str = ""
    """What to say where it changes nothing."""
    bare: bool = False
    """Whether it stands without a value."""


def _listen(settings: Settings, text: str) -> Settings:
    # A bare port means every address there; here it means this machine.
    return settings._replace(serve=settings.serve._replace(listen=f"0.0.0.0{text}" if text[:1] == ":" else text))  # noqa: S104


def _path(settings: Settings, text: str) -> Settings:
    return settings._replace(store=settings.store._replace(path=text))


def _admins(settings: Settings, text: str) -> Settings:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    access = settings.serve.access or Access()
    access = access._replace(admins=(*access.admins, *names))
    return settings._replace(serve=settings.serve._replace(access=access))


def _keep(settings: Settings, text: str) -> Settings:
    return settings._replace(store=settings.store._replace(keep_jobs=quantity.duration(text)))


def _shortest(settings: Settings, text: str) -> Settings:
    stats = settings.serve.stats._replace(shortest=quantity.duration(text))
    return settings._replace(serve=settings.serve._replace(stats=stats))


NONE = "has no meaning here"
AGENT = "is a matter of the agent that runs sacct: see collect.slurmjob in its settings"
FLAGS = (
    Flag(("--web.listen-address",), _listen),
    Flag(("--web.admin-users",), _admins),
    Flag(("--data.path", "--path.data"), _path),
    Flag(("--data.retention.period",), _keep),
    Flag(("--slurm.elapsed.time.cutoff",), _shortest),
    Flag(("--db.update.interval",), remark=AGENT),
    Flag(("--slurm.sacct.path",), remark=AGENT),
    Flag(("--slurm.sacct.run.as.slurmuser",), remark=AGENT, bare=True),
    Flag(("--slurm.sacct.run.with.sudo",), remark=AGENT, bare=True),
    Flag(("--batch.scheduler.slurm",), remark=AGENT, bare=True),
    Flag(("--db.name",), remark=NONE),
    Flag(("--db.table.name",), remark=NONE),
    Flag(("--db.last.update.time",), remark=NONE),
    Flag(("--log.level",), remark=NONE),
)


def add(to: argparse.ArgumentParser, flags: tuple[Flag, ...] = FLAGS) -> None:
    """They are understood, and not advertised."""
    for flag in flags:
        how: dict[str, Any] = {"action": "append_const", "const": ""} if flag.bare else {"action": "append"}
        to.add_argument(*flag.names, dest=flag.names[0], default=[], help=argparse.SUPPRESS, **how)


def applied(settings: Settings, given: argparse.Namespace, flags: tuple[Flag, ...] = FLAGS) -> Settings:
    """Settings with what the flags say. ValueError for a value that cannot be."""
    for flag, texts in _given(given, flags):
        for text in texts if flag.apply else ():
            try:
                settings = flag.apply(settings, text) if flag.apply else settings
            except ValueError as error:
                raise ValueError(f"{flag.names[0]}: {error}") from None
    return settings


def remarks(given: argparse.Namespace, flags: tuple[Flag, ...] = FLAGS) -> list[str]:
    """A sentence for each flag that changes nothing."""
    return [f"{flag.names[0]} {flag.remark}" for flag, _ in _given(given, flags) if flag.remark]


def _given(given: argparse.Namespace, flags: tuple[Flag, ...]) -> Iterator[tuple[Flag, list[str]]]:
    for flag in flags:
        if texts := getattr(given, flag.names[0]):
            yield flag, texts
