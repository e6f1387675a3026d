"""Thresholds of findings as settings have them, and as somebody would like to try them."""

from collections.abc import Iterable
from typing import Any

from jobsight import catalogue
from jobsight.settings import SettingsError, options


def thresholds(given: dict[str, Any], file: str = "settings") -> dict[str, Any]:
    """Of every finding: what settings say under `findings`, and the usual for the rest."""
    known = catalogue.finding_names()
    for code in given:
        if code not in known:
            raise SettingsError(f"{file}: unknown key findings.{code}; known here: {', '.join(known)}")
    found = {}
    for one in catalogue.findings():
        own = given.get(one.code)
        # `findings: {mouse: false}` is the short way to have no more of it.
        told = {"enabled": own} if isinstance(own, bool) else own or {}
        found[one.code] = options(type(one.limits), told, file, f"findings.{one.code}")
    return found


def changed(given: dict[str, Any], tried: Iterable[str]) -> dict[str, Any]:
    """Settings with some of them changed, each as `idle_cores.share=0.3`."""
    found = {code: {"enabled": own} if isinstance(own, bool) else own or {} for code, own in given.items()}
    for text in tried:
        key, equals, value = text.partition("=")
        code, dot, name = key.strip().partition(".")
        if not equals or not dot or not name:
            raise SettingsError(f"expected a threshold such as idle_cores.share=0.3, got {text!r}")
        own = found.get(code, {})
        # What is no table is an error of the settings, which `thresholds` tells.
        found[code] = own | {name: _read(value.strip(), text)} if isinstance(own, dict) else own
    return found


def _read(value: str, text: str) -> Any:
    """As YAML would read it."""
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise SettingsError(f"expected a threshold such as idle_cores.share=0.3, got {text!r}") from None
