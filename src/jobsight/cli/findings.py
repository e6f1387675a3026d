"""What is worth telling somebody: waste, hogs, misfits.

With no filter: what was found in the last 7 days, your own; root sees everybody's. --by adds up; --mail USER prints a
mail; --back-test KEY=VALUE says whom a changed threshold would tell of before anybody is told; --acknowledge ID says
that you know of one, and takes it off mails.
"""

import time
from argparse import Namespace
from typing import Any

from jobsight.cli.arguments import (
    FailedError,
    WrongUseError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)
from jobsight.cli.jobs import whose
from jobsight.formats import when
from jobsight.settings import Settings

# In no user's name. With a comma in it a mail would go to others, too.
NO_NAME = frozenset(' ,;:<>()[]"')
BY = ("code", "job", "user", "account", "node")


@sentences
def run(arguments: list[str]) -> int:
    accept = parser("findings", __doc__)
    add_settings(accept)
    add_formats(accept)
    accept.add_argument("--since", default="7d", help="that were so after: 7d, 2026-11-15, … (7d)")
    accept.add_argument("--until", default="", help="that were so before")
    accept.add_argument("--user", dest="owner", help="about whom; `all` for everybody (yourself)")
    accept.add_argument("--account", default="", help="about jobs of this account")
    accept.add_argument("--node", default="", help="on this node")
    accept.add_argument("--code", default="", help="of this kind: idle_cores, hog, …")
    accept.add_argument(
        "--state", default="", choices=("new", "continuing", "ended", "acknowledged"), help="in this state"
    )
    accept.add_argument("--by", choices=BY, help="added up by kind, job, user, account or node")
    accept.add_argument("--mail", metavar="USER", help="a mail to this user, to be handed to sendmail")
    accept.add_argument(
        "--back-test", nargs="+", metavar="KEY=VALUE", help="try thresholds: idle_cores.share=0.3 hung.idle=2h"
    )
    accept.add_argument("--acknowledge", metavar="ID", help="say that you know of it")
    accept.add_argument("--note", default="", help="what to remember with that")
    accept.add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
    given = accept.parse_args(arguments)
    if sum(bool(way) for way in (given.mail, given.back_test, given.acknowledge)) > 1:
        raise WrongUseError("one at a time: --mail, --back-test or --acknowledge")
    if given.mail and (set(given.mail) & NO_NAME or not given.mail.isprintable()):
        raise WrongUseError(f"--mail: expected the name of a user, got {given.mail!r}")
    chosen = _chosen(given)
    settings = settings_of(given.settings)
    print(_answer(given, chosen, settings))
    return 0


def _chosen(given: Namespace) -> dict[str, str]:
    chosen = {name: getattr(given, name) for name in ("since", "until", "account", "node", "code", "state")}
    for name in ("since", "until"):
        try:
            when.instant(chosen[name] or "now", time.time())
        except ValueError as error:
            raise WrongUseError(f"--{name}: {error}") from None
    # Whom a changed threshold would tell of is asked about everybody.
    asked = given.mail or ("all" if given.back_test and given.owner is None else given.owner)
    return chosen | {"owner": whose(asked)}


def _answer(given: Namespace, chosen: dict[str, str], settings: Settings) -> str:
    from jobsight.analyse.thresholds import changed, thresholds
    from jobsight.show.reader import open_reader
    from jobsight.store.protocol import StoreError

    # What cannot be is said before a store is opened.
    thresholds(changed(settings.findings, given.back_test or ()))
    try:
        reader = open_reader(given.store or settings.store.place, given=settings.findings)
        try:
            if given.acknowledge:
                return _acknowledged(reader, given)
            if given.back_test:
                return _tested(reader.backtest(given.back_test, **chosen), given)
            return _shown(reader.findings(**chosen), given)
        finally:
            reader.close()
    except StoreError as error:
        raise FailedError(str(error)) from None


def _acknowledged(reader: Any, given: Namespace) -> str:
    if not reader.acknowledge(given.acknowledge, given.note):
        raise FailedError(f"no finding {given.acknowledge}; `jobsight findings` lists them")
    return f"{given.acknowledge} is acknowledged."


def _tested(found: dict[str, Any], given: Namespace) -> str:
    from jobsight.show.letter import tested
    from jobsight.show.terminal import export

    if given.format == "json":
        import json

        return json.dumps(found, indent=2)
    if given.format != "table":
        return export([one | {"change": word} for word in ("added", "gone") for one in found[word]], given.format)
    return tested(found, given.back_test)


def _shown(found: list[dict[str, Any]], given: Namespace) -> str:
    from jobsight.show.grouping import groups
    from jobsight.show.letter import added_up, listed, mail
    from jobsight.show.terminal import export

    if given.mail:
        now = time.time()
        until = when.instant(given.until, now, end=True) if given.until else now
        text = mail(given.mail, found, when.instant(given.since, now), until)
        return text or f"Nothing to tell {given.mail}."
    if given.format != "table":
        return export([group._asdict() for group in groups(found, given.by)] if given.by else found, given.format)
    if not found:
        return "Nothing was found that is worth telling. Try --since 30d, or --user all."
    return added_up(found, given.by) if given.by else listed(found)
