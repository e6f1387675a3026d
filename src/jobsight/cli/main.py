"""`jobsight VERB …`: finds the verb's file and runs it. Every file of `cli/` but this one is a verb."""

import os
import sys
from importlib import import_module

import jobsight.cli
from jobsight import __version__
from jobsight.catalogue import modules

NOT_VERBS = ("main", "arguments", "copying", "door", "recounting")


def verbs() -> list[str]:
    return [name for name in modules(jobsight.cli) if name not in NOT_VERBS]


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 done, 1 failed, 2 wrong use; one sentence on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if given else 2
    if given[0] in ("-V", "--version"):
        print(f"jobsight {__version__}")
        return 0
    if given[0] not in verbs():
        print(f"jobsight: no verb {given[0]!r}; there are {', '.join(verbs())}", file=sys.stderr)
        return 2
    try:
        code: int = import_module(f"jobsight.cli.{given[0]}").run(given[1:])
    except BrokenPipeError:
        # `jobsight jobs | head`: nobody is listening any more, and that is fine.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    return code


def _overview() -> str:
    lines = ["jobsight shows people what their compute jobs really did.", "", "usage: jobsight VERB …", ""]
    for verb in verbs():
        text = import_module(f"jobsight.cli.{verb}").__doc__ or ""
        lines.append(f"  {verb:<9} {text.strip().splitlines()[0]}")
    return "\n".join(
        [*lines, "", "`jobsight VERB --help` tells more; `jobsight up` starts everything on this machine."]
    )
