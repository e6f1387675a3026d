"""Say who may send to the server: make, list and revoke tokens, and invite nodes to fetch their own.

Works on the store itself, whether its server runs or not; the server heeds a change with the next request. As long
as there is no token, and no `serve.token_file`, anybody who reaches the server may send.
"""

import argparse
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jobsight.cli.arguments import (
    FailedError,
    add_formats,
    add_settings,
    parser,
    sentences,
    settings_of,
)
from jobsight.formats import quantity

if TYPE_CHECKING:
    from jobsight.ingest.token import Invite, Token, Tokens

DAY = 86400.0
# No calendar of ours goes much further.
LONGEST = 1000 * 365 * DAY


@sentences
def run(arguments: list[str]) -> int:
    given = _accepted(arguments)
    settings = settings_of(given.settings)
    from jobsight.store.protocol import StoreError
    from jobsight.store.tokens import open_tokens

    act = {"add": _add, "invite": _invite, "list": _list, "revoke": _revoke}[given.verb]
    try:
        tokens = open_tokens(given.store or settings.store.place)
        try:
            act(tokens, given, time.time())
        finally:
            tokens.close()
    except StoreError as error:
        raise FailedError(str(error)) from None
    return 0


def _accepted(arguments: list[str]) -> argparse.Namespace:
    accept = parser("token", __doc__)
    verbs = accept.add_subparsers(dest="verb", metavar="VERB", required=True)
    texts = {
        "add": "make a token for a cluster or one node; it is printed once",
        "invite": "make a key that a node trades for a token of its own, with `jobsight enrol`",
        "list": "tokens and keys: whose, since when, last used, until when",
        "revoke": "from now on a token or key is good for nothing",
    }
    made = {}
    for name, text in texts.items():
        made[name] = verbs.add_parser(name, help=text, description=text)
        made[name].add_argument("--store", metavar="DIR|URL", help="where rows and jobs are kept")
        add_settings(made[name])
    for name in ("add", "invite"):
        made[name].add_argument("--cluster", required=True, type=_name, help="whose messages it is good for")
        made[name].add_argument("--node", type=_name, help="only those of this node")
    made["add"].add_argument("--expires", type=_duration, help="after so long: 90d, 1y, … (never)")
    made["invite"].add_argument("--uses", type=_count, default=1, help="so many nodes may use it (1)")
    made["invite"].add_argument("--expires", type=_duration, default=DAY, help="the key, after so long (1d)")
    made["invite"].add_argument("--lifetime", type=_duration, help="of the tokens it is traded for (no end)")
    add_formats(made["list"])
    made["revoke"].add_argument("id", metavar="ID", help="as `jobsight token list` shows it")
    return accept.parse_args(arguments)


def _name(text: str) -> str:
    if not 1 <= len(text) <= 255:
        raise argparse.ArgumentTypeError("expected a name of 1 to 255 letters")
    return text


def _duration(text: str) -> float:
    try:
        found = quantity.duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 < found <= LONGEST:
        raise argparse.ArgumentTypeError("expected a time of up to 1000 years; without one there is no end")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 1000000, got {text}")
    return int(text)


def _add(tokens: "Tokens", given: argparse.Namespace, now: float) -> None:
    from jobsight.ingest.token import Token, digest, new_id, new_secret

    number, secret = new_id(), new_secret()
    expires = None if given.expires is None else now + given.expires
    first = not tokens.needed()
    tokens.add(Token(number, digest(secret), given.cluster, given.node, now, expires))
    print(f"{number}.{secret}", flush=True)
    _say(f"token {number} is good for {_scope(given)}{_until(expires)}. It is shown only now: put it into a file")
    _say("that only the agent may read, and name that as the sink's token_file.")
    if first:
        _say("It is the first one: from now on this server takes messages only with a token.")


def _invite(tokens: "Tokens", given: argparse.Namespace, now: float) -> None:
    from jobsight.ingest.token import Invite, digest, new_id, new_secret

    number, secret = new_id(), new_secret()
    made = Invite(
        number, digest(secret), given.cluster, given.node, now, now + given.expires, given.uses, given.lifetime
    )
    tokens.add_invite(made)
    print(f"{number}.{secret}", flush=True)
    times = "once" if given.uses == 1 else f"{given.uses} times"
    _say(
        f"key {number} is good {times} for {_scope(given)}{_until(made.expires)}. It is shown only now. On the node:"
    )
    _say("jobsight enrol https://SERVER KEY")


def _list(tokens: "Tokens", given: argparse.Namespace, now: float) -> None:
    from jobsight.show.terminal import export, table

    items = [_plain(token, now) for token in tokens.tokens()] + [_plain(key, now) for key in tokens.invites()]
    if given.format != "table":
        print(export(items, given.format))
        return
    if not items:
        print("No token has been made: whoever reaches the server may send, unless serve.token_file is set.")
        return
    names = ["id", "kind", "cluster", "node", "made", "used", "expires", "state"]
    rows = [[_cell(name, item[name]) for name in names] for item in items]
    print(table(names, rows))


def _revoke(tokens: "Tokens", given: argparse.Namespace, now: float) -> None:
    # Somebody may give the whole token: what is behind the dot is none of our business here.
    number = given.id.partition(".")[0]
    if not tokens.revoke(number, now):
        raise FailedError(f"no token or key {number}: see `jobsight token list`")
    print(f"{number} is revoked.")


def _plain(item: "Token | Invite", now: float) -> dict[str, Any]:
    from jobsight.ingest.token import Token, ended

    token = isinstance(item, Token)
    return {
        "id": item.id,
        "kind": "token" if token else "key",
        "cluster": item.cluster,
        "node": item.node,
        "made": _iso(item.made),
        "used": _iso(item.used) if isinstance(item, Token) else f"{item.spent} of {item.uses}",
        "expires": _iso(item.expires),
        "revoked": _iso(item.revoked),
        "state": ended(item, now) or "good",
    }


def _cell(name: str, value: Any) -> str:
    if value is None:
        return {"node": "any", "expires": "never"}.get(name, "—")
    return value[:16].replace("T", " ") if name in ("made", "used", "expires") and "T" in value else str(value)


def _iso(instant: float | None) -> str | None:
    return None if instant is None else datetime.fromtimestamp(instant, UTC).isoformat(timespec="seconds")


def _scope(given: argparse.Namespace) -> str:
    return f"node {given.node} of cluster {given.cluster}" if given.node else f"every node of cluster {given.cluster}"


def _until(expires: float | None) -> str:
    return "" if expires is None else f" until {datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M} UTC"


def _say(text: str) -> None:
    """Beside what is printed, so that `jobsight token add … > FILE` holds the token alone."""
    print(f"jobsight: {text}", file=sys.stderr)
