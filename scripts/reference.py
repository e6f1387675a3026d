"""Writes the reference pages from the code. `--check` only says whether they are fresh."""

import contextlib
import io
import json
import sys
from importlib import import_module
from pathlib import Path

from jobsight import catalogue
from jobsight.analyse import findingpage
from jobsight.analyse.keeper import DERIVED
from jobsight.cli.main import verbs
from jobsight.schema import jsonschema, reference

PLACE = Path(__file__).parent.parent / "docs" / "reference"


def pages() -> dict[str, str]:
    """Text by file name."""
    found = catalogue.collectors()
    schemas = {item.name: jsonschema.message(item) for item in found}
    return {
        "records.md": reference.page(found, DERIVED),
        "messages.json": json.dumps(schemas, indent=2) + "\n",
        "commands.md": commands(),
        "findings.md": findingpage.page(catalogue.findings()),
    }


def commands() -> str:
    """Every verb's own help."""
    parts = ["# Commands", "", "Generated from the code by `make docs`. Do not edit."]
    for verb in verbs():
        parts += ["", f"## jobsight {verb}", "", "```text", _help(verb), "```"]
    return "\n".join(parts) + "\n"


def _help(verb: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        import_module(f"jobsight.cli.{verb}").run(["--help"])
    return text.getvalue().strip()


def stale() -> list[str]:
    """The pages that do not say what the code says."""
    return [name for name, text in pages().items() if not _same(PLACE / name, text)]


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def main() -> int:
    if "--check" in sys.argv:
        print("\n".join(stale()))
        return 1 if stale() else 0
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PLACE / name).write_text(text)
        print(f"docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
