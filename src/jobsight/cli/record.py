"""Run a collector and keep what it read as a fixture.

The files it asked for are copied to INTO/COLLECTOR/MACHINE/root, with people's names replaced, and what it made
of them is written to expected.json beside it: read both before you share them. The copy is read back at once and
must give the same rows.
"""

import os
import re
import shutil

from jobsight import catalogue
from jobsight.cli.arguments import FailedError, WrongUseError, add_root, parser, sentences
from jobsight.recording import Recording, UnlikeError
from jobsight.recording import record as record_run


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("record", __doc__)
    accept.add_argument("collector", metavar="COLLECTOR", help="which; see `jobsight doctor`")
    accept.add_argument("--as", dest="machine", metavar="MACHINE", required=True, help="what to call this machine")
    accept.add_argument("--into", metavar="DIR", default="tests/collect", help="default: tests/collect")
    accept.add_argument("--force", action="store_true", help="write over an earlier recording of that name")
    accept.add_argument("--keep-names", action="store_true", help="replace no names: for trees without real people")
    add_root(accept)
    given = accept.parse_args(arguments)
    if given.collector not in catalogue.collector_names():
        raise WrongUseError(f"no collector {given.collector!r}; there are {', '.join(catalogue.collector_names())}")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", given.machine):
        raise WrongUseError(f"a machine is named by small letters, digits and dashes, not {given.machine!r}")
    if not os.path.isdir(given.root):
        raise WrongUseError(f"{given.root} is no directory")
    into = os.path.join(given.into, given.collector, given.machine)
    try:
        _record(given.collector, Recording(given.root, keep_names=given.keep_names), into, force=given.force)
    except OSError as error:
        raise FailedError(f"cannot write {error.filename or into}: {error.strerror}") from None
    return 0


def _record(name: str, host: Recording, into: str, *, force: bool) -> None:
    if os.path.lexists(into):
        if not force:
            raise WrongUseError(f"{into} exists; --force writes over it")
        shutil.rmtree(into)
    try:
        message = record_run(catalogue.collector(name), host, into)
    except UnlikeError as error:
        raise FailedError(f"{error}; {into} is left for you to look at") from None
    if message.status == "absent":
        raise FailedError(f"this machine has nothing that {name} reads, so there is nothing to record")
    count = len(next(iter(message.rows.values()), ()))
    note = f" ({message.error})" if message.error else ""
    print(f"{into}: {message.status}{note}, {count} rows from {len(host.files)} files; read it before you share it")
