"""Finds every collector, every sink and every finding. The only discovery: the folder is the list."""

import os
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import jobsight.collect
import jobsight.ship
from jobsight.collector import Collector

if TYPE_CHECKING:
    from jobsight.analyse.finding import Finding


def modules(package: ModuleType) -> list[str]:
    """The files of a folder of ours, sorted."""
    try:
        files = os.listdir(package.__path__[0])
    except NotADirectoryError:
        # Inside a zipapp. Not always this way: pkgutil brings `inspect` and more, a megabyte of an agent's memory.
        import pkgutil

        return sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.removesuffix(".py") for name in files if name.endswith(".py") and name != "__init__.py")


@cache
def collector_names() -> list[str]:
    """The files of `collect/`. They do not change while a program runs."""
    return modules(jobsight.collect)


def collector(name: str) -> Collector:
    """The collector a file declares; KeyError with what is known if there is no such file."""
    if name not in collector_names():
        raise KeyError(f"no collector {name!r}; there are {', '.join(collector_names())}")
    module = import_module(f"jobsight.collect.{name}")
    found: Collector = getattr(module, name).collector
    return found


def collectors() -> list[Collector]:
    """All of them."""
    return [collector(name) for name in collector_names()]


def sink_names() -> list[str]:
    """The files of `ship/` that are destinations: those that can open one."""
    return sorted(
        name for name in modules(jobsight.ship) if hasattr(import_module(f"jobsight.ship.{name}"), "open_sink")
    )


@cache
def finding_names() -> list[str]:
    """The files of `analyse/findings/`."""
    return modules(import_module("jobsight.analyse.findings"))


@cache
def finding(name: str) -> "Finding":
    """The finding a file declares. The server's: nodes have not what it needs."""
    found: Finding = getattr(import_module(f"jobsight.analyse.findings.{name}"), name).finding
    return found


def findings() -> "list[Finding]":
    """All of them."""
    return [finding(name) for name in finding_names()]


def sink(name: str) -> ModuleType:
    """The module of a destination, with its `Options` and `open_sink`."""
    module: ModuleType | None = None
    with suppress(ModuleNotFoundError):
        module = import_module(f"jobsight.ship.{name}")
    if module is None or not hasattr(module, "open_sink"):
        raise KeyError(f"no sink {name!r}; there are {', '.join(sink_names())}")
    return module
