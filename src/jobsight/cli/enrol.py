"""Trade a key from `jobsight token invite` for this node's own token, and keep it where the agent finds it.

A running agent takes the new token with its next batch. Asked again after an answer was lost, with the same key, the
server gives the same token.
"""

import argparse
import json
import os
import sys
import time

from jobsight import files
from jobsight.cli.arguments import FailedError, WrongUseError, add_settings, parser, sentences, settings_of
from jobsight.host import Host
from jobsight.ship.http import after, said
from jobsight.ship.post import Address, Answer, Poster, Tls, address
from jobsight.ship.proxy import chosen

TOKEN = "/etc/jobsight/token"  # noqa: S105
OWNER = "jobsight"
TIMEOUT = 30.0
# An answer that did not come is asked for again after these pauses.
PAUSES = (1.0, 3.0, 10.0)
LONGEST = 60.0
# How our server says that it will not. Anything else may come from a gateway that has lost a good answer: then the
# secret must be kept, or the key is spent for nothing.
REFUSED = (400, 403, 413, 415)


@sentences
def run(arguments: list[str]) -> int:
    given = _accepted(arguments)
    to = _address(given.url, plain=given.plain)
    key = sys.stdin.readline().strip() if given.key == "-" else given.key
    if "." not in key:
        raise WrongUseError("that is no key: it looks like abcdefgh.…, as `jobsight token invite` prints it")
    node = given.node or settings_of(given.settings, only=("agent",)).node or Host("/").node()
    if given.ca_file and not os.access(given.ca_file, os.R_OK):
        raise WrongUseError(f"cannot read {given.ca_file}")
    try:
        post = Poster(to, TIMEOUT, Tls(given.ca_file), chosen(to, given.proxy, os.environ))
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    owner = _owner(given.owner, given.token_file)
    # Others may pass through: the agent is one of them.
    os.makedirs(os.path.dirname(os.path.abspath(given.token_file)), mode=0o755, exist_ok=True)
    secret = _secret(given.token_file, key.partition(".")[0])
    try:
        answer = _asked(post, json.dumps({"key": key, "node": node, "secret": secret}).encode())
    finally:
        post.close()
    if answer.status != 200:
        if answer.status in REFUSED:
            os.unlink(_wish(given.token_file))
        raise FailedError(f"{given.url} answered {answer.status}: {said(answer)}")
    number, who = _made(answer)
    files.replace_secret(given.token_file, f"{number}.{secret}\n".encode(), owner)
    os.unlink(_wish(given.token_file))
    print(f"{who} has token {number}, in {given.token_file}.")
    return 0


def _accepted(arguments: list[str]) -> argparse.Namespace:
    accept = parser("enrol", __doc__)
    accept.add_argument("url", metavar="URL", help="the server, such as https://monitor.example")
    accept.add_argument("key", metavar="KEY", help="as `jobsight token invite` printed it; - reads it from a pipe")
    accept.add_argument("--token-file", metavar="FILE", default=TOKEN, help=f"where the token goes ({TOKEN})")
    accept.add_argument("--owner", metavar="USER", help=f"whose file that is ({OWNER}, if root finds such a user)")
    accept.add_argument("--node", help="as the settings or the machine call it, if not given")
    accept.add_argument("--ca-file", metavar="FILE", help="whom to trust, in place of the system's authorities")
    accept.add_argument("--proxy", metavar="URL", help="through this one (https_proxy of the environment); or none")
    accept.add_argument("--plain", action="store_true", help="send key and token unencrypted over the network")
    add_settings(accept)
    return accept.parse_args(arguments)


def _address(url: str, *, plain: bool) -> Address:
    try:
        to = address(url)
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    here = to.host.startswith("127.") or to.host in ("localhost", "::1")
    if not (to.secure or here or plain):
        raise WrongUseError("over http:// everybody on the way can read the token: use https://, or say --plain")
    # People copy the address from the sink's settings.
    return to._replace(path=f"{to.path.rstrip('/').removesuffix('/ingest')}/enrol")


def _owner(name: str | None, token_file: str) -> tuple[int, int] | None:
    """Whose the file is to be: as told, as before, or the agent's."""
    import pwd

    if name is None and os.geteuid() != 0:
        return None
    if name is None and os.path.exists(token_file):
        before = os.stat(token_file)
        return before.st_uid, before.st_gid
    try:
        account = pwd.getpwnam(name or OWNER)
    except KeyError:
        if name is None:
            return None
        raise WrongUseError(f"there is no user {name}") from None
    return account.pw_uid, account.pw_gid


def _made(answer: Answer) -> tuple[str, str]:
    """The token's id, and whose it is. FailedError if somebody else answers there."""
    try:
        made = json.loads(answer.body)
        return str(made["id"]), f"Node {made['node']} of cluster {made['cluster']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FailedError(f"that is no answer of a jobsight server: {said(answer)[:60]!r}") from None


def _wish(token_file: str) -> str:
    return f"{token_file}.wish"


def _secret(token_file: str, number: str) -> str:
    """The secret of the token to be. Kept before it is asked with: if the answer is lost, the same must be asked."""
    words = files.read_at(_wish(token_file), 0, 4096).decode("ascii", "replace").split()
    if len(words) == 2 and words[0] == number:
        return words[1]
    import secrets

    made = secrets.token_urlsafe(32)
    files.replace_secret(_wish(token_file), f"{number} {made}\n".encode())
    return made


def _asked(post: Poster, body: bytes) -> Answer:
    """The server's answer. FailedError if there is none."""
    for pause in (*PAUSES, None):
        try:
            answer = post.post(body, {"Content-Type": "application/json"})
        except ValueError as error:
            raise WrongUseError(str(error)) from None
        except OSError as error:
            # Not imported for its name alone: ssl is there only where it was needed.
            if type(error).__name__ == "SSLCertVerificationError":
                raise FailedError(f"the server is not trusted: {error}; name its authority with --ca-file") from None
            wait, why = pause, str(error)
        else:
            if answer.status not in (429, 502, 503, 504) or pause is None:
                return answer
            wait, why = (
                min(LONGEST, max(pause, after(answer.headers, time.time()))),
                f"{answer.status}: {said(answer)}",
            )
        if wait is None:
            raise FailedError(f"the server does not answer: {why}; try again with the same key")
        print(f"jobsight: no answer yet ({why}), again in {wait:g} s", file=sys.stderr, flush=True)
        time.sleep(wait)
    raise AssertionError
