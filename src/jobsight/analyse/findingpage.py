"""The reference page of findings, from their own declarations."""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, get_type_hints

from jobsight.analyse.finding import Finding
from jobsight.formats.number import duration, size
from jobsight.schema.units import Bytes, Seconds


def page(findings: Iterable[Finding]) -> str:
    """What each is, and its thresholds as they are if settings say nothing."""
    parts = [
        "# Findings",
        "",
        "Generated from the code by `make docs`. Do not edit. How to use them: ../operate/findings.md.",
    ]
    for one in findings:
        module = inspect.getmodule(one.judge)
        parts += ["", f"## {one.code}", "", f"**{one.title}** (about a {one.of}). {_first(module)}", ""]
        parts += [f"{one.why} {one.how}", ""]
        if one.instead_of:
            parts += [
                f"Where it is found, these are not told: {', '.join(f'`{code}`' for code in one.instead_of)}.",
                "",
            ]
        parts += ["| threshold | usual | meaning |", "|---|---|---|"]
        meanings, kinds = _meanings(type(one.limits)), get_type_hints(type(one.limits))
        for name, value in one.limits._asdict().items():
            if name != "enabled":
                parts.append(f"| `{name}` | {_shown(value, kinds[name])} | {meanings.get(name, '')} |")
    return "\n".join(parts) + "\n"


def _first(module: Any) -> str:
    return " ".join((module.__doc__ or "").split("\n\n")[0].split())


def _meanings(limits: type[Any]) -> dict[str, str]:
    """The sentence under each field."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(limits))).body
    found: dict[str, str] = {}
    body = getattr(tree, "body", [])
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
            found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def _shown(value: Any, kind: Any) -> str:
    if kind is Seconds:
        return duration(value)
    if kind is Bytes:
        return size(value)
    if isinstance(value, tuple | list):
        return ", ".join(f"`{item}`" for item in value) or "none"
    if isinstance(value, float) and value >= 1e6:
        return f"{value:.0f}"
    return "none" if value == {} else f"{value}"
