"""Which proxy stands between a node and its server: the setting's, the environment's, or none. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from jobsight.ship.post import Address, address

# As a setting: straight, whatever the environment says.
STRAIGHT = "none"
FORM = "expected a proxy such as http://proxy.example:3128 or none"


class Proxy(NamedTuple):
    """Where it is, and who we are there. The second is a secret: it is never shown."""

    host: str
    port: int
    authorization: str | None = None


def proxy(text: str) -> Proxy:
    """`http://[user:password@]host[:port]`. ValueError that does not repeat it: there may be a password in it."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "http", text
    if scheme != "http":
        raise ValueError(f"{FORM}; one that is spoken to over TLS is not known here")
    login, at, place = rest.rpartition("@")
    try:
        found = address(f"http://{place}")
    except ValueError:
        raise ValueError(FORM) from None
    if found.path != "/":
        raise ValueError(FORM)
    port = found.port if place.rstrip("/").endswith(f":{found.port}") else 3128
    return Proxy(found.host, port, _basic(login) if at else None)


def _basic(login: str) -> str:
    from binascii import b2a_base64
    from urllib.parse import unquote_to_bytes

    name, _, password = login.partition(":")
    pair = unquote_to_bytes(name) + b":" + unquote_to_bytes(password)
    return f"Basic {b2a_base64(pair, newline=False).decode('ascii')}"


def chosen(to: Address, setting: str | None, environment: Mapping[str, str]) -> Proxy | None:
    """The one to go through, or None. What the environment says does not hold for this machine itself."""
    if setting is not None:
        return None if setting == STRAIGHT else proxy(setting)
    name = "https_proxy" if to.secure else "http_proxy"
    said = environment.get(name) or environment.get(name.upper())
    if not said or to.host == "localhost" or to.host.startswith("127.") or to.host == "::1":
        return None
    if _left_out(to, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    try:
        return proxy(said)
    except ValueError as error:
        raise ValueError(f"{name} in the environment: {error}") from None


def _left_out(to: Address, no_proxy: str) -> bool:
    """Whether `no_proxy` names the host: itself, a domain it is in, a network it is in, or `*`."""
    return any(_names(entry, to) for entry in no_proxy.replace(",", " ").lower().split())


def _names(entry: str, to: Address) -> bool:
    name, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.endswith("]")):
        return int(port) == to.port and _names(name, to)
    host, name = to.host.lower(), entry.strip("[]").lstrip("*").lstrip(".")
    if entry == "*" or host == name or (name and host.endswith(f".{name}")):
        return True
    return "/" in entry and _within(host, entry)


def _within(host: str, network: str) -> bool:
    """Names are not looked up."""
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
