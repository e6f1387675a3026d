"""YAML read by a process of its own: the library takes a megabyte and a half of memory and is needed for a moment.

A tenth of the agent's, for as long as it lives; so the resident agent asks another interpreter, which ends.
"""

import json
import sys
from typing import Any

from jobsight.command import CommandError, run
from jobsight.settings import SettingsError

# The other finds modules where this one does, in a zipapp or an environment too.
SCRIPT = """
import json, sys
file, *sys.path = sys.argv[1:]
from jobsight.settings import SettingsError, values
try:
    with open(file, encoding="utf-8") as text:
        print(json.dumps(values(text.read(), file), default=str))
except OSError as error:
    wrong = f"cannot read settings {file}: {error.strerror}"
except (SettingsError, UnicodeDecodeError) as error:
    wrong = str(error)
else:
    sys.exit(0)
print(json.dumps({"wrong": wrong}), file=sys.stderr)
sys.exit(2)
"""
LIMIT = 30.0


def values_of(file: str) -> Any:
    """The plain values of a YAML file. SettingsError if they cannot be had."""
    try:
        read = run((sys.executable, "-I", "-S", "-c", SCRIPT, file, *sys.path), LIMIT, codes=(0, 2))
    except CommandError as error:
        raise SettingsError(f"cannot read settings {file}: {error}") from None
    if read.code:
        raise SettingsError(_reason(file, read.error))
    return json.loads(read.text)


def _reason(file: str, said: str) -> str:
    try:
        return str(json.loads(said)["wrong"])
    except (ValueError, KeyError, TypeError):
        return f"cannot read settings {file}: {' '.join(said.split())[-200:]}"
