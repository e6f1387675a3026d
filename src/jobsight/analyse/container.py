"""The containers a job ran in, from its processes. Pure."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct


class ContainerUse(Struct):
    """One container, or all of one runtime that tells no more."""

    runtime: str
    id: str | None
    name: str | None
    image: str | None
    nodes: list[str]
    processes: int
    cpu_time: float
    commands: list[str]
    """What ran in it, the busiest first."""
    sentence: str


# Commands that are named.
FEW = 3


def containers(processes: Iterable[Any]) -> list[ContainerUse]:
    """The busiest first."""
    found: dict[tuple[str | None, ...], list[Any]] = {}
    for one in processes:
        if one.container is not None:
            key = (one.container, one.container_id, one.container_name, one.image)
            found.setdefault(key, []).append(one)
    made = [_use(key, members) for key, members in found.items()]
    return sorted(made, key=lambda use: (-use.cpu_time, use.runtime, use.id or "", use.image or ""))


def _use(key: tuple[str | None, ...], members: list[Any]) -> ContainerUse:
    runtime, number, name, image = key
    busy = sorted(members, key=lambda one: -one.cpu_time)
    commands = list(dict.fromkeys(one.command for one in busy))
    used = sum(one.cpu_time for one in members)
    nodes = sorted({one.node for one in members})
    told = said(str(runtime), number, name, image, commands)
    return ContainerUse(str(runtime), number, name, image, nodes, len(members), used, commands, told)


def said(runtime: str, number: str | None, name: str | None, image: str | None, commands: list[str]) -> str:
    """In words: what ran, in which container, made from which image."""
    many = f"{', '.join(commands[:FEW])}{' …' if len(commands) > FEW else ''}"
    kind = "with users of its own, as containers do" if runtime == "namespace" else f"in a container of {runtime}"
    which = " ".join(filter(None, (name, f"({number})" if number and name else number)))
    text = f"{many} ran {kind}" + (f", {which}" if which else "")
    return f"{text}, image {image}." if image else f"{text}."
