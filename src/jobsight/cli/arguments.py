"""Arguments that several verbs share, and errors as one sentence."""

import argparse
import sys
from collections.abc import Callable, Collection
from functools import wraps

from jobsight.files import LockedError
from jobsight.host import Host
from jobsight.settings import Settings, SettingsError, from_values, parse


class WrongUseError(ValueError):
    """The command line cannot be: exit code 2."""


class FailedError(RuntimeError):
    """It could be and did not work: exit code 1."""


def parser(verb: str, text: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the verb's own docstring."""

    def formatted(prog: str) -> argparse.HelpFormatter:
        # With a width of its own argparse need not ask the terminal, and the agent need not load what that takes.
        return argparse.RawDescriptionHelpFormatter(prog, width=100)

    return argparse.ArgumentParser(prog=f"jobsight {verb}", description=text, formatter_class=formatted)


def add_settings(to: argparse.ArgumentParser) -> None:
    to.add_argument("--settings", metavar="FILE", help="YAML settings; every key has a default")


def add_web_config(to: argparse.ArgumentParser) -> None:
    # Both spellings of the requirement this came from.
    to.add_argument(
        "--web-config-file", "--web.config.file", dest="web_config", metavar="FILE", help="HTTPS and passwords"
    )


def add_root(to: argparse.ArgumentParser) -> None:
    to.add_argument("--root", metavar="DIR", default="/", help="a directory tree that stands for the machine")


def add_formats(to: argparse.ArgumentParser) -> None:
    formats = to.add_mutually_exclusive_group()
    for name in ("json", "csv", "tsv"):
        formats.add_argument(
            f"--{name}",
            dest="format",
            action="store_const",
            const=name,
            default="table",
            help=f"print {name.upper()}",
        )


def seconds(text: str) -> float:
    """An argument that is a number of seconds."""
    number = float(text)
    if not 0.01 <= number <= 86400:
        raise argparse.ArgumentTypeError(f"expected seconds between 0.01 and a day, got {text}")
    return number


def settings_of(file: str | None, only: Collection[str] = ()) -> Settings:
    if file is None:
        return from_values({}, only=only)
    try:
        return parse(Host("/").read(_absolute(file)), file, only)
    except OSError as error:
        raise WrongUseError(f"cannot read settings {file}: {error.strerror}") from None


def _absolute(path: str) -> str:
    import os

    return os.path.abspath(path).lstrip("/")


def sentences(run: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """Turn the errors people can mend into one sentence and an exit code."""

    @wraps(run)
    def wrapped(arguments: list[str]) -> int:
        try:
            return run(arguments)
        except (WrongUseError, SettingsError) as error:
            print(f"jobsight: {error}", file=sys.stderr)
            return 2
        except (FailedError, LockedError) as error:
            print(f"jobsight: {error}", file=sys.stderr)
            return 1
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            print(f"jobsight: {where}{error.strerror or error}", file=sys.stderr)
            return 1

    return wrapped
