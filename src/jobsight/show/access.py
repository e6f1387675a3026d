"""Who asks, and what that one may see.

Three ways to know somebody, in this order: the kernel says who calls on the socket beside the store; a proxy that is
trusted names a user; a password of the web config file was shown. Whoever is not known sees nothing.
"""

import grp
import os
import pwd
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple

from fastapi import HTTPException
from starlette.requests import HTTPConnection

from jobsight.serving import Access
from jobsight.store.sight import Sight


class Viewer(NamedTuple):
    """Somebody who looks."""

    name: str
    everything: bool = False
    """Whether other people's jobs are shown too."""
    accounts: tuple[str, ...] = ()
    """Accounts all of whose jobs are shown."""

    @property
    def sight(self) -> Sight | None:
        return None if self.everything else Sight((self.name,) if self.name else (), self.accounts)


# Where nobody is kept from anything.
EVERYBODY = Viewer("", everything=True)


class Admission:
    """Says who a request is from. Without settings everybody sees everything."""

    def __init__(self, options: Access | None) -> None:
        self._options = options
        self._proxies = [ip_network(text) for text in options.trusted_proxies] if options else []

    def viewer(self, request: HTTPConnection) -> Viewer:
        """401 for somebody nobody knows."""
        if self._options is None:
            return EVERYBODY
        caller = getattr(request.state, "caller", None)
        if caller is not None:
            name = user_name(caller.uid)
            # Root, and whoever the server runs as: its files are theirs.
            return Viewer(name, everything=True) if caller.uid in (0, os.geteuid()) else self.known(name)
        name = self._named(request) or self._proven(request)
        if not name:
            raise HTTPException(401, "nobody said who asks", {"WWW-Authenticate": 'Basic realm="jobsight"'})
        return self.known(name)

    def known(self, name: str) -> Viewer:
        """What somebody of this name may see."""
        options = self._options or Access()
        if name in options.admins or (options.admin_groups and groups(name) & set(options.admin_groups)):
            return Viewer(name, everything=True)
        accounts = (options.coordinators or {}).items()
        return Viewer(name, accounts=tuple(account for account, users in accounts if name in users))

    def _proven(self, request: HTTPConnection) -> str:
        """Whose password was shown. A proxy's own is nobody's, if it is there to vouch for others."""
        name: str = getattr(request.state, "password_user", "")
        return "" if self._options and name in self._options.proxy_users else name

    def _named(self, request: HTTPConnection) -> str:
        """Whom a trusted proxy names; nobody if it is not trusted."""
        options = self._options
        if options is None or not self._trusted(request):
            return ""
        if options.proxy_users and getattr(request.state, "password_user", "") not in options.proxy_users:
            return ""
        said = {text.strip() for header in options.user_headers for text in request.headers.getlist(header)} - {""}
        if len(said) > 1:
            raise HTTPException(400, "the proxy names more than one user")
        return said.pop() if said else ""

    def _trusted(self, request: HTTPConnection) -> bool:
        if request.client is None or not self._proxies:
            return False
        try:
            address = ip_address(request.client.host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self._proxies)


def user_name(uid: int) -> str:
    """As collectors write owners: a number that has no name is its own."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def groups(name: str) -> set[str]:
    """The groups of a user of this machine; none for others."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return set()
    found = set()
    for number in os.getgrouplist(name, user.pw_gid):
        try:
            found.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return found
